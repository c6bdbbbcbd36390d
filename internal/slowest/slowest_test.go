// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// offer offers a request of n milliseconds to the store.
func offer(s *Store, model string, n int, at time.Time, timeline []byte) {
	r := &series.Contribution{Dimensions: []string{model}, Arrival: at, TraceID: [16]byte{1, byte(n), byte(n >> 8)}, SpanID: [8]byte{2}}
	r.SetValue(numbers.RequestDuration, float64(n)/1000)
	if s.Accepts(r) {
		s.Add(r, timeline, Facts{})
	}
}

func all(*Entry) bool { return true }

func TestSlowest_HoldsTheSlowestOfEachModelAndWindow(t *testing.T) {
	s, start := New(0), time.Now()
	for n := range 1000 {
		offer(s, "a", (n*7919)%1000, start, []byte{1})
		offer(s, "b", n, start, nil)
	}
	found := s.Slowest(0, 0, 300, all)
	require.Len(t, found, 2*perBoard)
	for i, r := range found {
		require.InDelta(t, float64(999-i/2)/1000, r.Value(numbers.RequestDuration), 1e-9)
	}
	require.Equal(t, perBoard, s.timelines, "displaced requests are released")

	s.Maintain(start.Add(6 * time.Minute))
	require.Empty(t, s.Slowest(0, 0, 100, all), "5 minutes are over")
	require.Len(t, s.Slowest(1, 0, 100, all), 100)
	offer(s, "a", 1, start.Add(6*time.Minute), nil)
	require.Len(t, s.Slowest(0, 0, 100, all), 1, "there is room for any request")
	s.Maintain(start.Add(25 * time.Hour))
	require.Empty(t, s.Slowest(2, 0, 100, all))
	require.Len(t, s.Slowest(3, 0, 100, all), 100)
	s.Maintain(start.Add(8 * 24 * time.Hour))
	require.Zero(t, s.timelines)
	require.Empty(t, s.models)
}

func TestTimelinesKept_FollowsTheLatestStreamedRequest(t *testing.T) {
	s := New(-1)
	offer(s, "", 1, time.Now(), []byte{1}) // not streamed: it has no time to first token
	_, ok := s.TimelinesKept()
	require.False(t, ok)
	for n, timeline := range [][]byte{{1}, nil, {1}} {
		r := &series.Contribution{Arrival: time.Now(), SpanID: [8]byte{byte(n + 1)}}
		r.SetValue(numbers.TimeToFirstToken, 1)
		s.Add(r, timeline, Facts{})
		kept, ok := s.TimelinesKept()
		require.True(t, ok)
		require.Equal(t, timeline != nil, kept)
	}
}

func TestSlowest_LimitsModels(t *testing.T) {
	s := New(0)
	for n := range 10 * maxModels {
		offer(s, strconv.Itoa(n), n, time.Now(), nil)
	}
	require.Len(t, s.models, maxModels+1)
	require.Len(t, s.Slowest(2, 0, 1000, all), maxModels+perBoard, "further models share boards")
}

func TestSlowest_LimitsTimelines(t *testing.T) {
	s := New(-1)
	offer(s, "", 1, time.Now(), make([]byte, maxTimeline+1))
	require.Equal(t, int64(1), s.TimelinesDropped())
	require.True(t, s.Slowest(0, 0, 1, all)[0].TimelineDropped)
	s.timelines = maxTimelines
	offer(s, "", 2, time.Now(), []byte{1})
	require.Equal(t, int64(2), s.TimelinesDropped())
}
