// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// requestsOf returns the requests of a model's series.
func requestsOf(e *Engine, model string) uint64 {
	return e.collect(e.at(0), numbers.TimeToFirstToken)[model].requests
}

func TestHandle_ReopensAnExpiredSeries(t *testing.T) {
	e := newTestEngine(nil)
	h := NewHandle(request("m", e.at(0)))
	e.RecordTo(h, answered("m", e.at(0), 1))
	held := h.series.Load()
	require.NotNil(t, held)
	require.Equal(t, 1, e.Expire(e.at(2*time.Hour)))
	require.Nil(t, h.series.Load(), "the handle keeps the memory of an expired series")
	e.RecordTo(h, answered("m", e.at(2*time.Hour), 1))
	require.NotSame(t, held, h.series.Load())
	require.Equal(t, uint64(1), e.collect(e.at(2*time.Hour), numbers.TimeToFirstToken)["m"].requests)
}

// A series that is marked as expired may still be in its handle for a moment.
func TestHandle_ReopensASeriesThatExpiresMeanwhile(t *testing.T) {
	e := newTestEngine(nil)
	h := NewHandle(request("m", e.at(0)))
	e.RecordTo(h, answered("m", e.at(0), 1))
	h.series.Load().expire(e.at(2 * time.Hour))
	e.RecordTo(h, answered("m", e.at(2*time.Hour), 1))
	require.Equal(t, uint64(1), e.collect(e.at(2*time.Hour), numbers.TimeToFirstToken)["m"].requests)
	require.Equal(t, 1, e.Held())
}

func TestHandle_LeavesTheOverflowSeriesOnceThereIsRoom(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Config.MaxSeries = 1 })
	e.Record(answered("other", e.at(0), 1))
	h := NewHandle(request("m", e.at(0)))
	require.True(t, e.RecordTo(h, answered("m", e.at(time.Hour), 1)).Overflow)
	e.Expire(e.at(90 * time.Minute))
	require.False(t, e.RecordTo(h, answered("m", e.at(90*time.Minute), 1)).Overflow)
}

func TestHandle_CountsEachRequestOnceFromTwoHandlesWhileSeriesAreRemoved(t *testing.T) {
	e := newTestEngine(nil)
	var recording sync.WaitGroup
	var removed uint64
	for range 2 {
		h := NewHandle(request("m", e.at(0)))
		recording.Go(func() {
			for range 2000 {
				e.RecordTo(h, answered("m", e.at(0), 1))
			}
		})
	}
	for range 20 { // the series expires between two requests
		for _, s := range e.all() {
			s.mu.Lock()
			if s.expired = true; s.outcomes[Success] != nil {
				removed += s.outcomes[Success].requests
			}
			s.mu.Unlock()
			e.remove(s)
		}
	}
	recording.Wait()
	require.Equal(t, uint64(4000), removed+requestsOf(e, "m"))
}

// Else an expired series would stay in the memory of its other handles.
func TestHandle_ASeriesIsInOneHandleOnly(t *testing.T) {
	e := newTestEngine(nil)
	first, second := NewHandle(request("m", e.at(0))), NewHandle(request("m", e.at(0)))
	e.RecordTo(first, answered("m", e.at(0), 1))
	e.RecordTo(second, answered("m", e.at(0), 1))
	require.Nil(t, first.series.Load())
	require.NotNil(t, second.series.Load())
	require.Equal(t, uint64(2), requestsOf(e, "m"))
}

func TestRecord_MeasuredDistributionEqualsItsEncoding(t *testing.T) {
	gaps := []float64{0, 0.01, 0.02, 0.5, 3}
	var measured sketch.Sketch
	for _, gap := range gaps {
		measured.Add(gap, 2)
	}
	limits := []Limits{{}, {Largest: 3}, {Largest: 2.9}, {Sum: 7.06}, {Sum: 7}, {Count: 10}, {Count: 9}}
	for _, l := range limits {
		encoded, direct := newTestEngine(nil), newTestEngine(nil)
		a, b := request("m", encoded.at(0)), request("m", direct.at(0))
		a.Gaps, b.Gaps = l, l
		*a.Distribution(numbers.InterTokenLatency) = Distribution{Sketch: measured.AppendBinary(nil), Max: 3}
		*b.Distribution(numbers.InterTokenLatency) = Distribution{Values: &measured, Max: 3}
		require.Equal(t, encoded.Record(a), direct.Record(b), "%+v", l)
		var x, y Snapshot
		encoded.Collect(encoded.at(0), func(s *Snapshot) { x = *s })
		direct.Collect(direct.at(0), func(s *Snapshot) { y = *s })
		require.Equal(t, x, y, "%+v", l)
	}
}
