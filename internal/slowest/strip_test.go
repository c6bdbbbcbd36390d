// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// entryOf returns a request whose chunks of one token arrived at these times, in milliseconds.
func entryOf(r *series.Contribution, at ...int64) *Entry {
	e := NewEntry(r, Facts{})
	var chunks timeline.Timeline
	for _, ms := range at {
		chunks.Append(ms*1e6, 1, timeline.Content)
	}
	e.Timeline = chunks.AppendBinary(nil, 0)
	return e
}

func TestStrip_LongestGapsAreInOrder(t *testing.T) {
	r := &series.Contribution{}
	r.SetValue(numbers.StallCount, 2)
	s := entryOf(r, 100, 200, 900, 1000, 2000, 2700).Strip(100)
	require.Equal(t, []int{4, 2, 5, 1, 3}, s.LongestGaps(9), "gaps of 1 s, 0.7 s, 0.7 s, 0.1 s and 0.1 s")
	require.Equal(t, []int{2, 4}, s.Stalled)
	require.Equal(t, time.Second, s.Gap(4))
	require.Zero(t, s.Gap(0))
}

func TestStrip_CountsChunksBeyondTheLimit(t *testing.T) {
	s := entryOf(&series.Contribution{}, 1, 2, 3, 4, 5).Strip(2)
	require.Len(t, s.At, 2)
	require.Equal(t, 3, s.Dropped)
}

func TestStrip_IsNilForADamagedTimeline(t *testing.T) {
	require.Nil(t, (&Entry{Timeline: []byte{2, 255}}).Strip(10))
	require.Nil(t, (&Entry{}).Strip(10))
}

// The longest gap is no stall if audio arrived in it. Audio at the end is no wait.
func TestStrip_AGapWithAudioIsNoStall(t *testing.T) {
	r := &series.Contribution{Outcome: series.Cancelled}
	r.SetValue(numbers.StallCount, 1)
	r.SetValue(numbers.RequestDuration, 6)
	r.SetValue(numbers.TimeToFirstToken, 0.1)
	r.SetValue(numbers.DecodeDuration, 3.7)
	e := NewEntry(r, Facts{})
	var chunks timeline.Timeline
	for _, c := range []struct {
		ms      int64
		channel timeline.Channel
	}{{100, timeline.Content}, {1500, timeline.Audio}, {3000, timeline.Content}, {3800, timeline.Content}, {5900, timeline.Audio}} {
		chunks.Append(c.ms*1e6, 1, c.channel)
	}
	e.Timeline = chunks.AppendBinary(nil, 0)
	s := e.Strip(10)
	require.Len(t, s.At, 3)
	require.Equal(t, []int{2}, s.Stalled, "0.8 s, not the 2.9 s with audio, and not the end")
}

// Senders write stall.count: it need not be true.
func TestStrip_StallCountThatCannotBeTrue(t *testing.T) {
	for stalls, want := range map[float64][]int{0.5: {}, 2: {1}, 1e300: {1}} {
		r := &series.Contribution{Outcome: series.Cancelled}
		r.SetValue(numbers.StallCount, stalls)
		require.Equal(t, want, entryOf(r, 1, 2).Strip(10).Stalled)
	}
}

// The spans of aggregated requests are watched before they are recorded.
func TestEntry_HasTheLargestGapOfARequestThatWasNotRecorded(t *testing.T) {
	var gaps sketch.Sketch
	gaps.Add(0.25, 1)
	gaps.Add(0.5, 1)
	r := &series.Contribution{Seconds: 1}
	r.Distribution(numbers.InterTokenLatency).Sketch = gaps.AppendBinary(nil)
	require.Equal(t, 0.5, NewEntry(r, Facts{}).LargestGap)
	r.Gaps.Largest = 0.4 // the decode was shorter
	require.True(t, math.IsNaN(NewEntry(r, Facts{}).LargestGap), "a gap that cannot be true")
	r.Distribution(numbers.InterTokenLatency).Sketch = []byte{1, 2}
	require.True(t, math.IsNaN(NewEntry(r, Facts{}).LargestGap))
}

func TestBoard_HoldsItsLimitOfTheSlowest(t *testing.T) {
	b := NewBoard(numbers.TimeToFirstToken, 3)
	for n := range 100 {
		r := &series.Contribution{TraceID: [16]byte{1, byte(n)}, SpanID: [8]byte{2}}
		require.False(t, b.Accepts(r), "without the quantity")
		r.SetValue(numbers.TimeToFirstToken, float64((n*37)%100))
		if b.Accepts(r) {
			b.Add(NewEntry(r, Facts{}))
		}
	}
	var found []float64
	for _, r := range b.Slowest() {
		found = append(found, r.Value(numbers.TimeToFirstToken))
	}
	require.Equal(t, []float64{99, 98, 97}, found)
}
