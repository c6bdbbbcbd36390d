// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// unmeasured returns the requests without an indicator, by indicator and reason.
func unmeasured(e *series.Engine) map[string]float64 {
	all := map[string]float64{}
	e.Collect(time.Now(), func(s *series.Snapshot) {
		for _, c := range series.Counters {
			if n, ok := s.Count(c.Count); ok && c.Indicator != "" {
				all[c.Indicator+" "+c.Reason] = n
			}
		}
	})
	return all
}

func TestRead_CountsUnmeasured(t *testing.T) {
	tests := map[string]struct {
		attributes           map[string]any
		want                 map[string]float64
		malformed, wrongType int64
	}{
		"both indicators": {
			attributes: map[string]any{"tokenpulse.unmeasured": []any{"time_to_first_token=no_token", "time_per_output_token=no_token"}},
			want:       map[string]float64{"time_to_first_token no_token": 1, "time_per_output_token no_token": 1},
		},
		"one indicator": {
			attributes: map[string]any{"tokenpulse.unmeasured": []any{"time_per_output_token=buffered"}, "tokenpulse.time_to_first_token": 0.5},
			want:       map[string]float64{"time_per_output_token buffered": 1},
		},
		"unknown reason":    {attributes: map[string]any{"tokenpulse.unmeasured": []any{"time_to_first_token=bored"}}, malformed: 1},
		"unknown indicator": {attributes: map[string]any{"tokenpulse.unmeasured": []any{"queue.duration=no_token"}}, malformed: 1},
		"no reason":         {attributes: map[string]any{"tokenpulse.unmeasured": []any{"time_to_first_token"}}, malformed: 1},
		"entries that are not texts": {
			attributes: map[string]any{"tokenpulse.unmeasured": []any{1, true, []any{"time_to_first_token=no_token"}}}, malformed: 1,
		},
		"two reasons": {
			attributes: map[string]any{"tokenpulse.unmeasured": []any{"time_to_first_token=no_token", "time_to_first_token=not_streamed"}},
			malformed:  1,
		},
		"a long list counts as malformed once": {
			attributes: map[string]any{"tokenpulse.unmeasured": slices.Repeat([]any{"time_to_first_token=no_token"}, 10_000)}, malformed: 1,
		},
		"a reason for an indicator that the span has": {
			attributes: map[string]any{
				"tokenpulse.unmeasured":          []any{"time_to_first_token=no_token", "time_per_output_token=one_token"},
				"tokenpulse.time_to_first_token": 0.5,
			},
			want: map[string]float64{"time_per_output_token one_token": 1}, malformed: 1,
		},
		"not a list": {attributes: map[string]any{"tokenpulse.unmeasured": "time_to_first_token=no_token"}, wrongType: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.attributes["tokenpulse.outcome"] = "success"
			engine := newEngine()
			tally := Read(spans(t, tt.attributes), &Options{}, time.Now(), engine.Record)
			require.EqualValues(t, 1, tally.Requests)
			if tt.want == nil {
				tt.want = map[string]float64{}
			}
			require.Equal(t, tt.want, unmeasured(engine))
			require.Equal(t, tt.malformed, tally.Rejected[series.MalformedUnmeasured])
			require.Equal(t, tt.wrongType, tally.Rejected[series.WrongType])
		})
	}
}
