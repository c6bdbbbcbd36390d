// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sharedcomponent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
)

type counting struct{ started, stopped int }

var errStart = errors.New("no port")

func (c *counting) Start(context.Context, component.Host) error { c.started++; return errStart }
func (c *counting) Shutdown(context.Context) error              { c.stopped++; return nil }

func TestGet_SharesAComponentUntilTheLastShutdown(t *testing.T) {
	var all Map[*string, *counting]
	config, other := new(string), new(string)
	create := func() (*counting, error) { return &counting{}, nil }
	first, err := all.Get(config, create)
	require.NoError(t, err)
	second, err := all.Get(config, create)
	require.NoError(t, err)
	alone, err := all.Get(other, create)
	require.NoError(t, err)
	c := first.Component
	require.Same(t, c, second.Component)
	require.NotSame(t, c, alone.Component)

	require.ErrorIs(t, first.Start(t.Context(), nil), errStart)
	require.ErrorIs(t, second.Start(t.Context(), nil), errStart)
	require.Equal(t, 1, c.started)

	require.NoError(t, first.Shutdown(t.Context()))
	require.NoError(t, first.Shutdown(t.Context()))
	require.Zero(t, c.stopped, "the other signal still uses it")
	require.NoError(t, second.Shutdown(t.Context()))
	require.Equal(t, 1, c.stopped)

	again, err := all.Get(config, create)
	require.NoError(t, err)
	require.NotSame(t, c, again.Component, "a stopped component cannot be used again")
}

// A component that stops while another signal asks for one is not the one that it gets.
func TestGet_NeverReturnsAComponentThatStops(t *testing.T) {
	create := func() (*lasting, error) { return &lasting{}, nil }
	for range 20_000 {
		var all Map[int, *lasting]
		last, err := all.Get(1, create)
		require.NoError(t, err)
		var stopping sync.WaitGroup
		stopping.Go(func() { _ = last.Shutdown(context.Background()) })
		next, err := all.Get(1, create)
		require.NoError(t, err)
		stopping.Wait()
		require.False(t, next.Component.stopped.Load())
		require.NoError(t, next.Shutdown(t.Context()))
		require.True(t, next.Component.stopped.Load())
	}
}

type lasting struct {
	component.StartFunc
	stopped atomic.Bool
}

func (l *lasting) Shutdown(context.Context) error {
	l.stopped.Store(true)
	return nil
}

func TestGet_ForgetsAComponentThatCannotBeCreated(t *testing.T) {
	var all Map[int, *counting]
	_, err := all.Get(1, func() (*counting, error) { return nil, errStart })
	require.ErrorIs(t, err, errStart)
	h, err := all.Get(1, func() (*counting, error) { return &counting{}, nil })
	require.NoError(t, err)
	require.NoError(t, h.Shutdown(t.Context()))
	require.Equal(t, 1, h.Component.stopped)
}
