// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// sketchOf returns a sketch with n values.
func sketchOf(v float64, n uint64) []byte {
	var s sketch.Sketch
	s.Add(v, n)
	return s.AppendBinary(nil)
}

// A forged span must not outweigh all others: its gaps lie within the span, and are fewer
// than its tokens.
func TestRead_LeavesOutGapsThatTheSpanCannotHave(t *testing.T) {
	const tokens, chunks = "tokenpulse.inter_token_latency.sketch", "tokenpulse.inter_chunk_latency.sketch"
	tests := map[string]struct {
		seconds   float64
		span      map[string]any
		malformed int64
		want      uint64 // gaps of tokens
	}{
		"plausible":                        {10, map[string]any{tokens: sketchOf(0.02, 499), "tokenpulse.token_count": 500}, 0, 499},
		"a billion tokens":                 {10, map[string]any{tokens: sketchOf(0, 1<<30)}, 1, 0},
		"16 million gaps are the most":     {10, map[string]any{tokens: sketchOf(0, 1<<24)}, 0, 1 << 24},
		"more gaps than counted tokens":    {10, map[string]any{tokens: sketchOf(0.001, 501), "tokenpulse.token_count": 500}, 1, 0},
		"a fraction of a token":            {10, map[string]any{tokens: sketchOf(0, 1<<30), "tokenpulse.token_count": 0.5}, 1, 0},
		"more gaps than reported tokens":   {10, map[string]any{tokens: sketchOf(0.001, 501), "gen_ai.usage.output_tokens": 3}, 0, 501},
		"a gap as long as the span":        {10, map[string]any{tokens: sketchOf(10, 1)}, 0, 1},
		"rounding and the bucket's width":  {10, map[string]any{tokens: sketchOf(10.1, 1)}, 0, 1},
		"a gap longer than the span":       {10, map[string]any{tokens: sketchOf(10.2, 1)}, 1, 0},
		"gaps that exceed the span":        {10, map[string]any{tokens: sketchOf(0.02, 510)}, 1, 0},
		"after a backward step":            {10, map[string]any{tokens: sketchOf(0.02, 900), "tokenpulse.clock.anomalies": 1}, 0, 900},
		"chunks after the span's end":      {10, map[string]any{tokens: sketchOf(9, 500), "tokenpulse.clock.anomalies": 1}, 0, 500},
		"a long gap and clock anomalies":   {10, map[string]any{tokens: sketchOf(11, 1), "tokenpulse.clock.anomalies": 1}, 1, 0},
		"anomalies over two days":          {3600, map[string]any{tokens: sketchOf(3600, 48), "tokenpulse.clock.anomalies": 48}, 0, 48},
		"a forged anomaly":                 {10, map[string]any{tokens: sketchOf(10, 20_000), "tokenpulse.clock.anomalies": 1}, 1, 0},
		"a billion seconds":                {100, map[string]any{tokens: sketchOf(100, 1e7), "tokenpulse.clock.anomalies": 1e7}, 1, 0},
		"a span of a billion seconds":      {1e9, map[string]any{tokens: sketchOf(1e9, 1)}, 1, 0},
		"a span of no time":                {0, map[string]any{tokens: sketchOf(0.000001, 5)}, 0, 5},
		"a span of no time with long gaps": {0, map[string]any{tokens: sketchOf(0.02, 5)}, 1, 0},
		"a span that ends before it began": {-10, map[string]any{tokens: sketchOf(0.02, 5)}, 1, 0},
		"gaps of chunks":                   {10, map[string]any{tokens: sketchOf(0.02, 100), chunks: sketchOf(11, 1)}, 1, 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			test.span["tokenpulse.time_to_first_token"] = 0.5
			traces := spans(t, test.span)
			span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			span.SetStartTimestamp(100e9)
			span.SetEndTimestamp(pcommon.Timestamp(int64(100e9) + int64(test.seconds*1e9)))
			tally := Read(traces, &Options{}, time.Now(), e.Record)
			require.EqualValues(t, 1, tally.Requests)
			require.Equal(t, test.malformed, tally.Rejected[series.MalformedSketch])
			e.Collect(time.Now(), func(s *series.Snapshot) {
				o := &s.Outcomes[series.Success]
				require.Equal(t, test.want, o.Distributions[numbers.InterTokenLatency].Sketch.Count())
				require.EqualValues(t, 1, o.Distributions[numbers.TimeToFirstToken].Sketch.Count(), "the rest counts")
			})
		})
	}
}

func TestRead_TokensOfChunks(t *testing.T) {
	const chunks, counted = "tokenpulse.tokens_per_chunk.sketch", "tokenpulse.token_count"
	unknown := []any{"tokens_per_chunk=not_reported"}
	for situation, test := range map[string]struct {
		span      map[string]any
		chunks    uint64
		absent    float64
		malformed int64
		mistaken  int64
	}{
		"known":                           {map[string]any{chunks: sketchOf(4, 25), counted: 100}, 25, 0, 0, 0},
		"unknown":                         {map[string]any{names.Unmeasured: unknown}, 0, 1, 0, 0},
		"known and unknown":               {map[string]any{chunks: sketchOf(4, 25), names.Unmeasured: unknown}, 25, 0, 0, 1},
		"more tokens than counted":        {map[string]any{chunks: sketchOf(4, 26), counted: 100}, 0, 0, 1, 0},
		"16 million tokens are the most":  {map[string]any{chunks: sketchOf(1<<20, 16)}, 16, 0, 0, 0},
		"more than a chunk may have":      {map[string]any{chunks: sketchOf(1<<20+1, 1)}, 0, 0, 1, 0},
		"more than a request may have":    {map[string]any{chunks: sketchOf(1<<20, 17)}, 0, 0, 1, 0},
		"more chunks than a request has":  {map[string]any{chunks: sketchOf(0, 1<<24+1)}, 0, 0, 1, 0},
		"longer gaps do not matter to it": {map[string]any{chunks: sketchOf(50, 2)}, 2, 0, 0, 0},
	} {
		t.Run(situation, func(t *testing.T) {
			for metric, on := range map[string]bool{"tokenpulse.tokens_per_chunk": true, "tokenpulse.stalls": false} {
				e := series.NewEngine(series.Options{Config: series.Config{MaxSeries: 1, SeriesExpiration: time.Hour}, Metrics: series.Selection{metric: true}})
				test.span["tokenpulse.time_to_first_token"] = 0.5
				tally := Read(spans(t, test.span), &Options{}, time.Now(), e.Record)
				require.EqualValues(t, 1, tally.Requests)
				require.Equal(t, test.mistaken, tally.Rejected[series.MalformedUnmeasured])
				e.Collect(time.Now(), func(s *series.Snapshot) {
					absent, _ := s.Count(series.Unmeasured(2, int(latency.NotReported)-1))
					if !on {
						require.Zero(t, absent, "a metric that is off adds no series")
						return
					}
					require.Equal(t, test.malformed, tally.Rejected[series.MalformedSketch])
					require.Equal(t, test.chunks, s.Outcomes[series.Success].Distributions[numbers.TokensPerChunk].Sketch.Count())
					require.InDelta(t, test.absent, absent, 0)
				})
			}
		})
	}
}
