// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"errors"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// maxGathers limits the results in memory: those being gathered, and those that scrapes are
// still writing.
const maxGathers = 2

// sharedGatherer shares a result among concurrent scrapes, whose memory would otherwise
// grow with their number.
//
// One gather runs at a time. Scrapes that arrive meanwhile share the next one, so that each
// gets a result from after its arrival. Only while maxGathers results are in use, which
// takes clients that read slowly, does a scrape get the latest of them. A write deadline on
// responses bounds its age.
type sharedGatherer struct {
	gather func() (exposition, error)
	// gathering is locked while a gather runs.
	gathering sync.Mutex

	// mu guards everything declared below.
	mu     sync.Mutex
	next   *gathered // has not begun
	latest *gathered // the last that began, nil if no scrape uses it any more
	inUse  int       // number of results, next included
}

// gathered is one result.
type gathered struct {
	users int           // guarded by sharedGatherer.mu
	ready chan struct{} // closed once the fields below are set

	exposition
	err error
}

var _ prometheus.TransactionalGatherer = (*sharedGatherer)(nil)

func newSharedGatherer(gather func() (exposition, error)) *sharedGatherer {
	return &sharedGatherer{gather: gather}
}

// Gather returns the current metrics. They must not be changed, and are not used any more
// once done is called.
func (g *sharedGatherer) Gather() (families []*dto.MetricFamily, done func(), err error) {
	result := g.use()
	return slices.Clone(result.families), func() { g.leave(result) }, result.err
}

// use returns a result that is ready. The caller has to leave it.
func (g *sharedGatherer) use() *gathered {
	result, begin := g.join()
	if begin {
		g.run(result)
	}
	<-result.ready
	return result
}

// join returns the result that a scrape uses. The caller has to run it if begin is true.
func (g *sharedGatherer) join() (result *gathered, begin bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.next != nil:
		result = g.next
	case g.inUse >= maxGathers:
		result = g.latest
	default:
		result, begin = &gathered{ready: make(chan struct{})}, true
		g.next = result
		g.inUse++
	}
	result.users++
	return result, begin
}

func (g *sharedGatherer) run(result *gathered) {
	g.gathering.Lock()
	defer g.gathering.Unlock()
	g.mu.Lock()
	g.next, g.latest = nil, result
	g.mu.Unlock()
	result.err = errGatherPanicked
	defer func() {
		if errors.Is(result.err, errGatherPanicked) {
			g.leave(result) // net/http recovers the panic, so the scrape does not
		}
		close(result.ready)
	}()
	result.exposition, result.err = g.gather()
}

var errGatherPanicked = errors.New("gathering the metrics panicked")

func (g *sharedGatherer) leave(result *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	result.users--
	if result.users > 0 {
		return
	}
	g.inUse--
	if g.latest == result {
		g.latest = nil
	}
}
