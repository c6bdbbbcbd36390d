// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tailReply is what an answer says of the gaps of a request.
type tailReply struct {
	Request struct {
		Reason     *string
		LargestGap *float64 `json:"largest_gap"`
		OpenTail   *float64 `json:"open_tail"`
	}
	Strip *struct{ Stalled []int }
}

// requireGaps checks the page of a request of 60 seconds with chunks at some times, in seconds.
func requireGaps(t *testing.T, r *series.Contribution, chunks []float64, largest, open float64, stalled ...int) {
	t.Helper()
	const start = int64(1_795_000_000_000_000_000)
	page, _ := pageAt(time.Now())
	r.Dimensions, r.Arrival, r.TraceID, r.SpanID = []string{"llama"}, page.Now(), [16]byte{1}, [8]byte{2}
	r.SetValue(numbers.RequestDuration, 60)
	var line timeline.Timeline
	var encoded []byte
	if len(chunks) > 0 {
		r.SetValue(numbers.TimeToFirstToken, chunks[0])
		r.SetValue(numbers.DecodeDuration, chunks[len(chunks)-1]-chunks[0])
		for _, at := range chunks {
			line.Append(start+int64(at*1e9), 1, timeline.Content)
		}
		encoded = line.AppendBinary(nil, start)
	}
	page.Slowest.Add(r, encoded, slowest.Facts{})
	var got tailReply
	get(t, page, "requests/01000000000000000000000000000000-0200000000000000", &got)
	check := func(want float64, got *float64) {
		t.Helper()
		if want == 0 {
			require.Nil(t, got)
			return
		}
		require.NotNil(t, got)
		require.InDelta(t, want, *got, 1e-6)
	}
	check(largest, got.Request.LargestGap)
	check(open, got.Request.OpenTail)
	if decode, _ := r.Value(numbers.DecodeDuration); open > decode && got.Request.Reason != nil {
		require.Equal(t, slowest.ReasonStalls, *got.Request.Reason, "no phase took longer than the tail")
	}
	if r.Outcome == series.Cancelled || stalled != nil {
		require.ElementsMatch(t, stalled, got.Strip.Stalled)
	}
}

func TestTail_OfARequestThatDidNotSucceedIsItsLongestGap(t *testing.T) {
	of := func(outcome series.Outcome, stalls int) *series.Contribution {
		r := &series.Contribution{Outcome: outcome}
		if stalls > 0 {
			r.SetValue(numbers.StallCount, float64(stalls))
		}
		return r
	}
	hung := []float64{1, 1.1, 3, 3.1}
	requireGaps(t, of(series.Error, 1), hung, 56.9, 56.9, 2)
	requireGaps(t, of(series.Incomplete, 1), hung, 56.9, 56.9, 2)
	requireGaps(t, of(series.Success, 1), hung, 1.9, 0, 2) // a late end is no gap between tokens
	requireGaps(t, of(series.Error, 1), []float64{2}, 58, 58)
	requireGaps(t, of(series.Error, 0), []float64{1, 59.9}, 58.9, 0) // it failed at once after a token

	none := of(series.Error, 0)
	none.Latency.Absences[0] = latency.NoToken
	requireGaps(t, none, nil, 60, 60)
	unknown := of(series.Error, 0)
	unknown.Latency.Absences[0] = latency.NotReported
	requireGaps(t, unknown, nil, 0, 0)
}

// The wait at the end of a cancelled request may be one of its stalls. No chunk follows it, so none is hatched for it.
func TestTail_OfACancelledRequestIsOneOfItsStalls(t *testing.T) {
	of := func(stalls float64) *series.Contribution {
		r := &series.Contribution{Outcome: series.Cancelled}
		r.SetValue(numbers.StallCount, stalls)
		return r
	}
	requireGaps(t, of(2), []float64{1, 1.1, 3, 3.1}, 56.9, 56.9, 2)
	requireGaps(t, of(1), []float64{1, 1.1, 1.2, 1.3}, 58.7, 58.7)
	requireGaps(t, of(2), []float64{1, 1.1, 58, 59.9}, 56.9, 0, 2, 3) // it was cancelled 0.1 s after a token
	requireGaps(t, of(3), []float64{1, 30, 31}, 29, 29, 1, 2)
}
