// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package inprocess holds what the components of one Collector process report to its live page, to its
// log and to the gauges of open streams and engines, because these cannot read it from spans and metrics. No request is
// counted, judged or exported by it. Two Collectors in one process, as in tests, share the registries.
//
// A scrape, a flush or the page visits the open streams, so that nothing is added per token. Counters that
// streams change could not show silence: it is the absence of an event. The price is that each publisher reports
// the open streams of all receivers in its Collector, and none of another Collector.
package inprocess

import (
	"maps"
	"slices"
	"sync"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

var (
	// OpenStreams has a function of each started receiver that visits its open streams. It may be
	// called while the receiver shuts down.
	OpenStreams Registry[VisitOpenStreams]
	// Endpoints has those of each started receiver that listens for HTTP. The live page says how to send a first request there.
	Endpoints Registry[[]Endpoint]
	// SLOs has the definitions of each started component that judges requests.
	SLOs Registry[[]slo.Definition]
	// IdleExporters has the endpoint of each configured exporter that no pipeline has created. They are
	// reported in the log, because the Collector is silent about them.
	IdleExporters Registry[string]
	// Engines has those whose streams each started receiver sees.
	Engines Registry[*liveness.Engines]
	// Doubts has those of each started component that looks for mistakes in its pipeline.
	Doubts Registry[*diagnostics.Doubts]
)

// Registry holds one value for each owner, so the components of the configuration limit its size.
// The zero value is empty and ready to use. It is safe for concurrent use.
type Registry[V any] struct {
	mu      sync.Mutex
	byOwner map[any]V
}

// Set sets the value of an owner, which is a pointer to a component. Remove it at the component's shutdown.
func (r *Registry[V]) Set(owner any, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byOwner == nil {
		r.byOwner = map[any]V{}
	}
	r.byOwner[owner] = value
}

// Remove removes the value of an owner, if there is one.
func (r *Registry[V]) Remove(owner any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byOwner, owner)
}

// Take returns the values in any order, and removes them.
func (r *Registry[V]) Take() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := slices.Collect(maps.Values(r.byOwner))
	clear(r.byOwner)
	return taken
}

// All returns the values in any order.
func (r *Registry[V]) All() []V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.byOwner))
}
