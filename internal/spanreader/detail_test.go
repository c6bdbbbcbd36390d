// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// readOne returns the only request of a span of one second.
func readOne(t *testing.T, attributes map[string]any) series.Contribution {
	t.Helper()
	traces := spans(t, attributes)
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	span.SetStartTimestamp(1e9)
	span.SetEndTimestamp(2e9)
	var read series.Contribution
	tally := Read(traces, &Options{}, time.Now(), func(r *series.Contribution) series.Recorded {
		read = *r
		return series.Recorded{}
	})
	require.EqualValues(t, 1, tally.Requests)
	require.Equal(t, [series.Reasons]int64{}, tally.Rejected)
	return read
}

// The processor does not write zero stalls, but the counters of a series start with its
// first stream: an increase from nothing to 1 is invisible to Prometheus.
func TestRead_StallsAreZeroUnlessWritten(t *testing.T) {
	for situation, test := range map[string]struct {
		span  map[string]any
		want  float64
		known bool
	}{
		"several chunks":        {map[string]any{"tokenpulse.chunk.count": 2}, 0, true},
		"one chunk":             {map[string]any{"tokenpulse.chunk.count": 1}, 0, false},
		"chunks not observed":   {nil, 0, false},
		"stalls":                {map[string]any{"tokenpulse.chunk.count": 2, "tokenpulse.stall.count": 1, "tokenpulse.stall.duration": 1}, 1, true},
		"a stall after a chunk": {map[string]any{"tokenpulse.chunk.count": 1, "tokenpulse.stall.count": 1, "tokenpulse.stall.duration": 1}, 1, true},
	} {
		t.Run(situation, func(t *testing.T) {
			attributes := map[string]any{"tokenpulse.outcome": "success"}
			maps.Copy(attributes, test.span)
			r := readOne(t, attributes)
			for _, c := range []numbers.ID{numbers.StallCount, numbers.StallDuration} {
				n, known := r.Value(c)
				require.Equal(t, test.known, known)
				require.InDelta(t, test.want, n, 0)
			}
		})
	}
}

func TestRead_OutputTokenRateFollowsFromTimePerOutputToken(t *testing.T) {
	for situation, test := range map[string]struct {
		span map[string]any
		want float64 // 0: missing
	}{
		"not written":                   {map[string]any{"tokenpulse.time_per_output_token": 0.02}, 50},
		"written":                       {map[string]any{"tokenpulse.time_per_output_token": 0.02, "tokenpulse.output_token_rate": 51.0}, 51},
		"no time per output token":      {map[string]any{"tokenpulse.outcome": "success"}, 0},
		"time per output token of zero": {map[string]any{"tokenpulse.time_per_output_token": 0.0}, 0},
		"an implausible rate":           {map[string]any{"tokenpulse.time_per_output_token": 1e-12}, 0},
	} {
		t.Run(situation, func(t *testing.T) {
			r := readOne(t, test.span)
			rate, known := r.Value(numbers.OutputTokenRate)
			require.Equal(t, test.want > 0, known)
			require.InDelta(t, test.want, rate, 1e-12)
		})
	}
}

// With and without the attribute, the rate is that of docs/definitions.md.
func TestRead_RequestTokenRateFollowsFromTokensAndDuration(t *testing.T) {
	const duration, output, reasoning = "tokenpulse.request.duration", "gen_ai.usage.output_tokens", "gen_ai.usage.reasoning.output_tokens"
	for situation, test := range map[string]struct {
		span  map[string]any
		want  float64
		known bool
	}{
		"not written":              {map[string]any{duration: 0.5, output: 20}, 40, true},
		"written":                  {map[string]any{duration: 0.5, output: 20, "tokenpulse.request_token_rate": 39.0}, 39, true},
		"reasoning above output":   {map[string]any{duration: 0.5, output: 20, reasoning: 30}, 100, true},
		"output holds reasoning":   {map[string]any{duration: 0.5, output: 20, reasoning: 10}, 40, true},
		"counted tokens":           {map[string]any{duration: 0.5, "tokenpulse.token_count": 5, "tokenpulse.chunk.count": 2}, 10, true},
		"frames":                   {map[string]any{duration: 0.5, "tokenpulse.chunk.count": 3}, 6, true},
		"no token":                 {map[string]any{duration: 0.5, "tokenpulse.chunk.count": 0}, 0, true},
		"tokens are not known":     {map[string]any{duration: 0.5}, 0, false},
		"no duration":              {map[string]any{output: 20, "tokenpulse.outcome": "success"}, 0, false},
		"a request without a time": {map[string]any{duration: 0.0, output: 20}, 0, false},
		"an implausible rate":      {map[string]any{duration: 1e-9, output: 20}, 0, false},
	} {
		t.Run(situation, func(t *testing.T) {
			r := readOne(t, test.span)
			rate, known := r.Value(numbers.RequestTokenRate)
			require.Equal(t, test.known, known)
			require.InDelta(t, test.want, rate, 1e-12)
		})
	}
}

// Free text of a service must not become a label, whoever wrote the span.
func TestRead_ErrorTypeThatMayBeTextIsOther(t *testing.T) {
	for text, label := range map[string]string{"timeout": "timeout", "my secret prompt": "_OTHER", "": ""} {
		dimensions := NewDimensions(series.DimensionsOf("error.type", "tier"))
		values := make([]string, 2)
		dimensions.Read(values, "error.type", pcommon.NewValueStr(text))
		dimensions.Read(values, "tier", pcommon.NewValueStr("two words"))
		require.Equal(t, []string{label, "two words"}, values)
	}
}

// A standard span does not say whether its chunks held one token each, so its token gaps
// must not pass for chunk gaps.
func TestRead_ChunkGapsNeedASpanOfFullDetail(t *testing.T) {
	tokens, chunks := sketchOf(0.02, 3), sketchOf(0.06, 1)
	for situation, test := range map[string]struct {
		span map[string]any
		want []byte
	}{
		"standard":                          {map[string]any{}, nil},
		"full, one token in each chunk":     {map[string]any{"tokenpulse.inter_chunk_latency.max": 0.02}, tokens},
		"full, several tokens in a chunk":   {map[string]any{"tokenpulse.inter_chunk_latency.max": 0.06, "tokenpulse.inter_chunk_latency.sketch": chunks}, chunks},
		"full, all chunks at once":          {map[string]any{"tokenpulse.inter_chunk_latency.max": 0.0}, tokens},
		"standard, an SLO of the chunk p99": {map[string]any{"tokenpulse.inter_chunk_latency.sketch": chunks}, chunks},
	} {
		t.Run(situation, func(t *testing.T) {
			test.span["tokenpulse.inter_token_latency.sketch"] = tokens
			r := readOne(t, test.span)
			require.Equal(t, tokens, r.Distribution(numbers.InterTokenLatency).Sketch)
			require.Equal(t, test.want, r.Distribution(numbers.InterChunkLatency).Sketch)
		})
	}
}
