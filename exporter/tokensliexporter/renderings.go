// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
)

// variant is what a rendering depends on besides the series.
type variant struct {
	exposition.Format
	// zero means that young samples are 0.
	zero bool
}

// renderings shares a rendering among the scrapes that come at once, whose CPU time and memory would otherwise
// grow with their number.
//
// A scrape gets a rendering that begins after its arrival, so it sees what was recorded before. It joins the
// rendering of its variant that waits to begin. One rendering runs at a time. Those that are done are in memory until
// their last reader leaves: renderings that take long are few, and short ones are small.
type renderings struct {
	// render must return early, with any result, once unused returns true.
	render func(v variant, unused func() bool) (*exposition.Body, error)
	// company returns how long a rendering waits for further scrapes before it begins.
	company func() time.Duration
	turn    chan struct{} // has an element while a rendering runs
	running sync.WaitGroup

	// mu guards everything declared below.
	mu      sync.Mutex
	waiting map[variant]*rendering // those that have not begun
	closed  bool
}

// rendering is the result for the scrapes that share it.
type rendering struct {
	users atomic.Int64
	ready chan struct{} // closed once the fields below are set
	body  *exposition.Body
	err   error
}

func (r *rendering) unused() bool { return r.users.Load() == 0 }

func newRenderings(render func(variant, func() bool) (*exposition.Body, error), company func() time.Duration) *renderings {
	return &renderings{render: render, company: company, turn: make(chan struct{}, 1), waiting: map[variant]*rendering{}}
}

var errClosed = errors.New("the exporter shuts down")

// get returns a rendering that began after the call, or the error of the context.
func (g *renderings) get(ctx context.Context, v variant) (*exposition.Body, error) {
	r, err := g.join(v)
	if err != nil {
		return nil, err
	}
	defer r.users.Add(-1)
	select {
	case <-r.ready:
		return r.body, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns the rendering that a scrape shares. The caller is one of its users.
func (g *renderings) join(v variant) (*rendering, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	r := g.waiting[v]
	if r == nil {
		r = &rendering{ready: make(chan struct{})}
		g.waiting[v] = r
		g.running.Go(func() { g.run(v, r) })
	}
	r.users.Add(1)
	return r, nil
}

// run renders, unless all users have left before.
func (g *renderings) run(v variant, r *rendering) {
	time.Sleep(g.company())
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.mu.Lock()
	delete(g.waiting, v)
	g.mu.Unlock()
	if r.unused() {
		return
	}
	begun := time.Now()
	g.fill(v, r)
	if time.Since(begun) > collectAfter {
		runtime.GC()
	}
}

// collectAfter is the time that a rendering takes whose garbage is collected, in its middle and at its end. Otherwise,
// renderings of many series would let the heap grow to twice its size, and more.
const collectAfter = 100 * time.Millisecond

// fill renders for the users.
func (g *renderings) fill(v variant, r *rendering) {
	defer close(r.ready)
	defer func() {
		if problem := recover(); problem != nil { // as net/http does for the rest of a scrape
			r.err = fmt.Errorf("rendering the metrics panicked: %v", problem)
		}
	}()
	r.body, r.err = g.render(v, r.unused)
}

// close waits for the renderings, which end early as their users leave. None begins later.
func (g *renderings) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
