// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package readiness tests machines that ask the tap whether an engine is ready.
package readiness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// balanced are three engines behind taps behind HAProxy.
type balanced struct {
	engines   [3]*engine
	readiness [3]string // URLs
	url       string
}

// startBalanced starts the example, with bounds of seconds. changes are texts of haproxy.cfg and what they become.
func startBalanced(t *testing.T, program string, changes ...string) *balanced {
	t.Helper()
	b := &balanced{url: collector.FreeAddress(t)}
	haproxy, arguments := []string{"127.0.0.1:8000", b.url}, []string{}
	for i := range b.engines {
		b.engines[i] = startEngine(t)
		tap, ready, engine := collector.FreeAddress(t), collector.FreeAddress(t), b.engines[i].address
		name := strings.ReplaceAll(engine, ":", "_")
		b.readiness[i] = fmt.Sprintf("http://%s/engines/%s/ready", ready, name)
		_, port, _ := strings.Cut(ready, ":")
		haproxy = append(haproxy, fmt.Sprintf("127.0.0.1_800%d", i+1), name, fmt.Sprintf("127.0.0.1:432%d", i+1), tap, fmt.Sprintf("port 433%d", i+1), "port "+port)
		receiver := fmt.Sprintf("receivers.token_tap/%d.", i+1)
		for key, value := range map[string]string{
			"endpoint": tap, "upstream.endpoint": "http://" + engine,
			"liveness.endpoint": ready, "liveness.bound": "1s", "liveness.max_bound": "2s",
		} {
			arguments = append(arguments, "--set", receiver+key+"="+value)
		}
	}
	collector.Start(t, collector.Example(t, "liveness/collector.yaml"), arguments...)
	config, err := os.ReadFile(collector.Example(t, "liveness/haproxy.cfg"))
	require.NoError(t, err)
	changed := strings.NewReplacer(append(haproxy, changes...)...).Replace(string(config))
	p := collector.StartProcess(t, program, "-db", "-f", collector.WriteFile(t, t.TempDir(), "haproxy.cfg", changed))
	p.WaitForListener(t, b.url)
	return b
}

// outcomes counts requests.
type outcomes struct {
	sync.Mutex
	whole, failed, hanging int
}

const (
	between    = 100 * time.Millisecond // requests
	clientWait = 5 * time.Second        // after which a request counts as hanging
)

// load sends requests until stop is called, which waits for the answers.
func (b *balanced) load(t *testing.T) (o *outcomes, stop func()) {
	t.Helper()
	o = &outcomes{}
	var open sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	open.Go(func() {
		for every := time.NewTicker(between); ; {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				open.Go(func() { o.ask(transport, "http://"+b.url+llmservice.ChatPath) })
			}
		}
	})
	return o, func() {
		cancel()
		open.Wait()
		transport.CloseIdleConnections()
	}
}

func (o *outcomes) ask(transport *http.Transport, url string) {
	ctx, cancel := context.WithTimeout(context.Background(), clientWait)
	defer cancel()
	body, status := []byte(nil), 0
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(llmservice.ChatAsked))
	if err == nil {
		var response *http.Response
		if response, err = transport.RoundTrip(request); err == nil {
			status = response.StatusCode
			body, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
	}
	o.Lock()
	defer o.Unlock()
	switch {
	case ctx.Err() != nil:
		o.hanging++
	case err != nil, status != http.StatusOK, !strings.HasSuffix(string(body), llmservice.ChatEnd):
		o.failed++
	default:
		o.whole++
	}
}

func (o *outcomes) String() string {
	return fmt.Sprintf("%d whole, %d failed, %d hanging", o.whole, o.failed, o.hanging)
}

// Of three engines, one accepts requests and says nothing, for 40 s after 5 s: this contains one trial. The figures of
// docs/liveness.md are those of this test.
func TestHAProxy_AvoidsAnEngineThatIsStuck(t *testing.T) {
	program := testenv.Program(t, "haproxy", "/usr/sbin/haproxy")
	results := map[string]*outcomes{}
	t.Run("balancers", func(t *testing.T) {
		for name, changes := range map[string][]string{
			"with the check":    nil,
			"without the check": {"default-server check ", "default-server no-check ", "use_backend all if", "# "},
		} {
			result := &outcomes{}
			results[name] = result
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := startBalanced(t, program, changes...)
				for _, url := range b.readiness {
					collector.WaitForReady(t, url, http.StatusOK)
				}
				warm, stop := b.load(t)
				time.Sleep(5 * time.Second)
				stop()
				require.Zero(t, warm.failed+warm.hanging, "all engines work: %s", warm)
				measured, stop := b.load(t)
				b.engines[1].wedged.Store(true)
				time.Sleep(40 * time.Second)
				stop()
				result.whole, result.failed, result.hanging = measured.whole, measured.failed, measured.hanging
				t.Logf("%s: %s", name, measured)

				b.engines[1].wedged.Store(false)
				collector.WaitForReady(t, b.readiness[1], http.StatusOK) // also without traffic, by a trial
				before := b.engines[1].asked.Load()
				_, stop = b.load(t)
				require.Eventually(t, func() bool { return b.engines[1].asked.Load() > before }, collector.Patience, time.Second, "it gets requests again")
				stop()
			})
		}
	})
	with, without := results["with the check"], results["without the check"]
	require.InDelta(t, 400/3, without.hanging+without.failed, 20, "a third of 40 s of requests")
	require.Less(t, 3*(with.hanging+with.failed), without.hanging+without.failed, "%s; %s", with, without)
	require.Positive(t, with.hanging, "those of the time until the verdict")
}

// With two of three engines stuck, the fallback of the example sends requests to all.
func TestHAProxy_AsksAllIfFewAreReady(t *testing.T) {
	b := startBalanced(t, testenv.Program(t, "haproxy", "/usr/sbin/haproxy"), "slowstart 30s", "")
	o, stop := b.load(t)
	time.Sleep(time.Second)
	for _, e := range b.engines[:2] {
		e.wedged.Store(true)
	}
	for _, url := range b.readiness[:2] {
		collector.WaitForReady(t, url, http.StatusServiceUnavailable)
	}
	time.Sleep(3 * time.Second) // HAProxy checks every second
	before := b.engines[0].asked.Load()
	require.Eventually(t, func() bool { return b.engines[0].asked.Load() > before }, 10*time.Second, time.Second, "before any trial")
	for _, e := range b.engines[:2] {
		e.wedged.Store(false)
	}
	for _, url := range b.readiness {
		collector.WaitForReady(t, url, http.StatusOK)
	}
	stop()
	require.Zero(t, o.failed, "%s", o)
}
