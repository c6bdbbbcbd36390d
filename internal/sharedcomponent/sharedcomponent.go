// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharedcomponent lets the pipelines of several signals share one component. The
// Collector creates, starts and stops a component once for each signal.
package sharedcomponent

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// Map holds the components by configuration: the Collector passes the same one for each
// signal. The zero value is empty and ready to use.
type Map[Config comparable, C component.Component] struct {
	mu  sync.Mutex
	all map[Config]*shared[C]
}

// Get returns a handle of the component of a configuration, which the first call creates.
func (m *Map[Config, C]) Get(config Config, create func() (C, error)) (*Handle[C], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[config]
	if s == nil {
		component, err := create()
		if err != nil {
			return nil, err
		}
		s = &shared[C]{component: component}
		s.release = func() (last bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			s.handles--
			if s.handles == 0 {
				delete(m.all, config)
			}
			return s.handles == 0
		}
		if m.all == nil {
			m.all = map[Config]*shared[C]{}
		}
		m.all[config] = s
	}
	s.handles++
	return &Handle[C]{Component: s.component, shared: s}, nil
}

// shared is a component with what its handles share.
type shared[C component.Component] struct {
	component C
	handles   int // guarded by the map's mutex
	start     sync.Once
	startErr  error
	// release gives up a handle. With the last one it also removes the component from the
	// map, so that no caller gets a component that is about to stop.
	release func() (last bool)
}

// Handle is a component as one signal has it.
type Handle[C component.Component] struct {
	Component C
	shared    *shared[C]
	shutdown  sync.Once
}

// Start starts the component, unless another handle did.
func (h *Handle[C]) Start(ctx context.Context, host component.Host) error {
	h.shared.start.Do(func() { h.shared.startErr = h.Component.Start(ctx, host) })
	return h.shared.startErr
}

// Shutdown stops the component if all other handles are shut down: a pipeline that ends
// later may still send its last data.
func (h *Handle[C]) Shutdown(ctx context.Context) (err error) {
	h.shutdown.Do(func() {
		if h.shared.release() {
			err = h.Component.Shutdown(ctx)
		}
	})
	return err
}
