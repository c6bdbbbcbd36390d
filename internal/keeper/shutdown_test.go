// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// journal records what a keeper does, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// journaled is a storage that records saves of budgets. They block until blocks is closed,
// unless that is nil.
type journaled struct {
	component.Component
	storage.Client
	*journal
	blocks chan struct{}
}

func (s *journaled) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, nil
}

func (s *journaled) Batch(_ context.Context, operations ...*storage.Operation) error {
	if operations[0].Type != storage.Set {
		return nil
	}
	s.add("save")
	if s.blocks != nil {
		<-s.blocks
	}
	return nil
}

func (s *journaled) Close(context.Context) error {
	s.add("close")
	return nil
}

// journaledHarness is a keeper whose flushes block until release is closed, whatever their
// context says.
type journaledHarness struct {
	*harness
	*journal
	storage *journaled
	release chan struct{}
	// during is called by each flush before it blocks.
	during func()
}

func startJournaled(t *testing.T, change func(*Settings)) *journaledHarness {
	t.Helper()
	id := storagetest.FileStorage
	h := &journaledHarness{journal: &journal{}, release: make(chan struct{}), during: func() {}}
	h.storage = &journaled{journal: h.journal}
	h.harness = newHarness(t, func(s *Settings) {
		s.Config.StorageID = &id
		s.Flush = func(context.Context) error {
			h.add("flush")
			h.during()
			<-h.release
			return nil
		}
		if change != nil {
			change(s)
		}
	})
	_, err := h.Start(t.Context(), storagetest.Host{id: h.storage})
	require.NoError(t, err)
	return h
}

// shutdownInTime requires that a shutdown ends before its deadline. The test runs in a bubble,
// whose clock stands still while the keeper computes.
func (h *journaledHarness) shutdownInTime(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	h.Shutdown(ctx)
	require.NoError(t, ctx.Err(), "the shutdown must end before its deadline")
}

// logged requires one log of what a shutdown lost, with an error.
func (h *journaledHarness) logged(t *testing.T, message, cause string) {
	t.Helper()
	entries := h.logs.FilterMessageSnippet(message).All()
	require.Len(t, entries, 1)
	require.Contains(t, entries[0].ContextMap()["error"], cause)
}

func TestShutdown_AbandonsAFlushThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startJournaled(t, nil)
		h.during = func() { h.Record(t.Context(), spans(t, 1, met)) }
		h.Run()
		h.Record(t.Context(), spans(t, 1, met))
		h.shutdownInTime(t)
		h.logged(t, "lost the data of the last flush", "it has not ended")
		require.Equal(t, []string{"save", "flush", "save", "close"}, h.all())
		close(h.release)
	})
}

func TestShutdown_SavesOnceIfNothingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startJournaled(t, nil)
		close(h.release)
		h.Run()
		h.Record(t.Context(), spans(t, 1, met))
		h.shutdownInTime(t)
		require.Equal(t, []string{"save", "flush", "close"}, h.all())
		h.shutdownInTime(t)
		require.Equal(t, []string{"save", "flush", "close"}, h.all(), "a second shutdown does nothing")
	})
}

// A round is stuck in a flush. Rounds go on: they save, and do not flush a second time.
func TestRun_SavesWhileAFlushBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startJournaled(t, func(s *Settings) { s.Interval = time.Millisecond })
		h.patience = 5 * time.Millisecond
		h.Run()
		saves := func() (n int) {
			for _, entry := range h.all() {
				if entry == "save" {
					n++
				}
			}
			return n
		}
		for want := range 3 {
			h.Record(t.Context(), spans(t, 1, met))
			require.Eventually(t, func() bool { return saves() > want }, 10*time.Second, time.Millisecond)
		}
		h.shutdownInTime(t)
		h.logged(t, "lost the data of the last flush", "the one before has not ended")
		all := h.all()
		require.Len(t, slices.DeleteFunc(slices.Clone(all), func(entry string) bool { return entry != "flush" }), 1)
		require.Equal(t, "close", all[len(all)-1])
		require.Positive(t, h.logs.FilterMessageSnippet("refused or blocks a flush").Len())
		close(h.release)
	})
}

func TestShutdown_ReturnsIfTheStorageBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startJournaled(t, nil)
		close(h.release)
		h.storage.blocks = make(chan struct{})
		h.Run()
		h.Record(t.Context(), spans(t, 1, met))
		h.shutdownInTime(t)
		h.logged(t, "lost the error budgets since the last save", "the one before has not ended")
		failed, err := h.telemetry.GetMetric("otelcol_token_sli_saves_failed")
		require.NoError(t, err)
		require.EqualValues(t, 1, failed.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		close(h.storage.blocks)
	})
}

func TestShutdownStep_LeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step, cancel := ShutdownStep(t.Context())
		defer cancel()
		deadline, _ := step.Deadline()
		require.Equal(t, stepTimeout, time.Until(deadline))

		ctx, cancelAll := context.WithTimeout(t.Context(), time.Hour)
		defer cancelAll()
		step, cancelStep := ShutdownStep(ctx)
		defer cancelStep()
		deadline, _ = step.Deadline()
		require.Equal(t, 30*time.Minute, time.Until(deadline))
	})
}
