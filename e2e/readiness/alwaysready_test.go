// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// prober asks for each engine whether it is ready, as a load balancer does.
type prober struct {
	mutex    sync.Mutex
	states   map[string]map[string]int // answers by engine and state
	notReady []string
}

const probeInterval = 50 * time.Millisecond

// probe asks until the returned function is called.
func (c *tap) probe(t *testing.T) (p *prober, stop func()) {
	t.Helper()
	p = &prober{states: map[string]map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	var open sync.WaitGroup
	for _, e := range c.engines {
		p.states[e.address] = map[string]int{}
		open.Go(func() {
			for every := time.NewTicker(probeInterval); ; {
				select {
				case <-ctx.Done():
					return
				case <-every.C:
					status, answer, err := collector.AskReady(c.ReadyURL(e.address))
					p.note(status, &answer, err)
				}
			}
		})
	}
	return p, func() {
		cancel()
		open.Wait()
	}
}

func (p *prober) note(status int, answer *collector.Evidence, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case status == 0: // nothing listens
	case status != http.StatusOK:
		p.notReady = append(p.notReady, fmt.Sprintf("%d: %+v", status, *answer))
	case err == nil: // else the answer broke off
		p.states[answer.Engine][answer.State]++
	}
}

// waitForState waits until each of some engines has a state in answers from now on.
func (p *prober) waitForState(t *testing.T, engines []*engine, state string) {
	t.Helper()
	p.mutex.Lock()
	for _, of := range p.states {
		clear(of)
	}
	p.mutex.Unlock()
	require.Eventually(t, func() bool {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return !slices.ContainsFunc(engines, func(e *engine) bool { return p.states[e.address][state] == 0 })
	}, collector.Patience, probeInterval)
}

// requireAlwaysReady checks that no answer had another status than 200.
func (p *prober) requireAlwaysReady(t *testing.T) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	require.Empty(t, p.notReady)
}

// Load balancers ask while the Collector is killed, restarted and reloaded, and while its host is suspended.
func TestReadiness_NoRestartMakesAHealthyEngineNotReady(t *testing.T) {
	t.Parallel()
	c := startTap(t, []*engine{startEngine(t), startEngine(t), startEngine(t)}, storage(t))
	busy, unused := c.engines[:2], c.engines[2:]
	for _, e := range busy {
		e.prefill = func(int) time.Duration { return 2 * prefill }
	}
	defer c.load(t, len(busy), asking(0))()
	p, stopProbe := c.probe(t)
	defer stopProbe()
	p.waitForState(t, busy, "producing")
	kill := func() { c.Kill(t); c.Collector = c.Again(t) }
	terminate := func() { c.Stop(t); c.Collector = c.Again(t) }
	reload := func() { c.Reload(t) }
	for _, disturb := range []func(){kill, reload, terminate, c.suspend, kill, reload, terminate} {
		disturb()
		p.waitForState(t, busy, "producing")
		p.waitForState(t, unused, "unknown")
	}
	stopProbe()
	p.requireAlwaysReady(t)
}

// suspend suspends the host of the Collector and the engines, for longer than the bound. The engines need some time to go on.
func (c *tap) suspend() {
	c.wedge(true)
	c.Signal(syscall.SIGSTOP)
	time.Sleep(2200 * time.Millisecond)
	c.Signal(syscall.SIGCONT)
	time.Sleep(1100 * time.Millisecond) // which has a judgement, and is less than the bound
	c.wedge(false)
}

func (c *tap) wedge(wedged bool) {
	for _, e := range c.engines {
		e.wedged.Store(wedged)
	}
}

// A prompt of 500,000 tokens has about 2 MB. Its prefill silences all streams for three times the bound without prompts.
func TestReadiness_ABusyEngineWithAPromptOf500kTokensIsReady(t *testing.T) {
	t.Parallel()
	c := startTap(t, []*engine{startEngine(t)})
	e := c.engines[0]
	e.prefill = func(bytes int) time.Duration { return time.Duration(bytes) * 1500 }
	p, stopProbe := c.probe(t)
	defer stopProbe()
	defer c.load(t, 1, asking(10_000))()
	c.WaitForEvidence(t, e.address, func(of *collector.Evidence) bool { return of.Learned })
	const size = 2_000_000
	for range 2 {
		answered := c.askInBackground(t, 0, asking(size))
		silence := 0.0
		c.WaitForEvidence(t, e.address, func(of *collector.Evidence) bool {
			if of.LargestPromptBytes > size && of.Waiting+of.Decoding > 1 {
				silence = max(silence, of.Silence)
			}
			return len(answered) > 0
		})
		require.NoError(t, <-answered)
		require.Greater(t, silence, 1.0, "longer than the bound without the prompt, while others are open")
	}
	stopProbe()
	p.requireAlwaysReady(t)
}
