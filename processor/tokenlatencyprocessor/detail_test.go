// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// annotatedBy returns the attributes under our prefix that a configuration gives a stream of one
// second. The timeline is in the notation of the golden files.
func annotatedBy(t *testing.T, words string, change func(ptrace.Span), settings map[string]any) map[string]any {
	t.Helper()
	cfg, err := load(t, settings)
	require.NoError(t, err)
	traces, spans := newSpans()
	span := addStream(spans)
	span.Attributes().PutStr(names.Timeline, words)
	packTimeline(t, span.Attributes())
	if change != nil {
		change(span)
	}
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	all := onlySpan(t, sink.AllTraces()[0]).Attributes().AsRaw()
	maps.DeleteFunc(all, func(name string, _ any) bool { return !strings.HasPrefix(name, "tokenpulse.") })
	return all
}

func withQueue(span ptrace.Span) { span.Attributes().PutDouble("tokenpulse.queue.duration", 0.03) }

func withUsage(span ptrace.Span) { span.Attributes().PutInt(names.GenAIOutputTokens, 99) }

func oneSLO(indicator, threshold string) []any {
	return []any{map[string]any{"name": "fast", "indicator": indicator, "threshold": threshold}}
}

// Everything that a stream can have besides stalls is turned on.
func TestDetail_StandardIsAtMostTwentyAttributes(t *testing.T) {
	fluidity := map[string]any{"time_to_first_token": "2s", "time_per_output_token": "50ms"}
	for situation, change := range map[string]func(ptrace.Span){"queue known": withQueue, "queue unknown": nil, "usage reported": withUsage} {
		for _, slo := range [][]any{oneSLO("time_per_output_token", "1s"), oneSLO("time_per_output_token", "1ms"), oneSLO("inter_chunk_latency.p99", "1s")} {
			written := annotatedBy(t, "100r 120x3 150x2 200", change, map[string]any{"slos": slo})
			most := 20
			if _, breached := written[names.SLOBreached]; breached {
				most++ // its verdict
			}
			require.LessOrEqual(t, len(written), most, "%s, %v: %v", situation, slo, slices.Sorted(maps.Keys(written)))
		}
		written := annotatedBy(t, "100r 120x3 150x2 200", change, map[string]any{
			"slos": oneSLO("time_per_output_token", "1s"), "fluidity": fluidity, "timeline": "keep",
		})
		require.LessOrEqual(t, len(written), 20, "%s with fluidity and timeline: %v", situation, slices.Sorted(maps.Keys(written)))
	}
}

// An SLO gets its indicator, and the attributes of its conditions.
func TestDetail_StandardWritesWhatAnSLONeeds(t *testing.T) {
	for name, slo := range map[string]map[string]any{
		"tokenpulse.inter_token_latency.mean":   {"indicator": "inter_token_latency.mean", "threshold": "1s"},
		"tokenpulse.inter_chunk_latency.p99":    {"indicator": "inter_chunk_latency.p99", "threshold": "1s"},
		"tokenpulse.decode.share":               {"indicator": "decode.share", "threshold": 1},
		"tokenpulse.output_token_rate":          {"indicator": "request.duration", "threshold": "9s", "match_regexp": map[string]any{"tokenpulse.output_token_rate": ".+"}},
		"tokenpulse.request_token_rate":         {"indicator": "request.duration", "threshold": "9s", "match_regexp": map[string]any{"tokenpulse.request_token_rate": ".+"}},
		"tokenpulse.inter_chunk_latency.mean":   {"indicator": "request.duration", "threshold": "9s", "match_range": map[string]any{"tokenpulse.inter_chunk_latency.mean": map[string]any{"min": 0.001}}},
		"tokenpulse.inter_chunk_latency.p50":    {"indicator": "request.duration", "threshold": "9s", "threshold_attribute": "tokenpulse.inter_chunk_latency.p50"},
		"tokenpulse.inter_chunk_latency.sketch": {"indicator": "inter_chunk_latency.max", "threshold": "1s"},
	} {
		slo["name"] = "fast"
		require.NotContains(t, annotatedBy(t, "100 120 150x2", nil, nil), name)
		written := annotatedBy(t, "100 120 150x2", nil, map[string]any{"slos": []any{slo}})
		require.Contains(t, written, name)
		_, met := written["tokenpulse.slo.met"]
		_, breached := written["tokenpulse.slo.breached"]
		require.True(t, met || breached, "a verdict of %v", slo)
	}
}

func TestDetail_ZerosAreNotWritten(t *testing.T) {
	for _, detail := range []string{"standard", "full"} {
		written := annotatedBy(t, "100 120 150", nil, map[string]any{"detail": detail})
		for _, name := range []string{"tokenpulse.stall.count", "tokenpulse.stall.duration", "tokenpulse.token_count.mismatch", "tokenpulse.clock.anomalies"} {
			require.NotContains(t, written, name, detail)
		}
		written = annotatedBy(t, "100 120 800", nil, map[string]any{"detail": detail})
		require.EqualValues(t, 1, written["tokenpulse.stall.count"])
		require.InDelta(t, 0.68, written["tokenpulse.stall.duration"], 1e-12)
	}
}

// A zero that is not written is judged as zero.
func TestDetail_SLOsOfStallsAndAnomaliesAreMetWithoutAny(t *testing.T) {
	for _, slo := range []map[string]any{
		{"name": "fast", "indicator": "stall.count", "threshold": 1},
		{"name": "fast", "indicator": "stall.duration", "threshold": "1s"},
		{"name": "fast", "indicator": "clock.anomalies", "threshold": 1},
	} {
		written := annotatedBy(t, "100 120 150", nil, map[string]any{"slos": []any{slo}})
		require.Equal(t, []any{"fast"}, written["tokenpulse.slo.met"], slo)
	}
	oneToken := annotatedBy(t, "100", nil, map[string]any{"slos": []any{map[string]any{"name": "fast", "indicator": "stall.count", "threshold": 1}}})
	require.Equal(t, []any{"fast"}, oneToken["tokenpulse.slo.not_eligible"], "one token has no gaps")
}

func TestDistribution_DropLeavesOutTheSketchesOnly(t *testing.T) {
	for _, detail := range []string{"standard", "full"} {
		kept := annotatedBy(t, "100 120 150x2", nil, map[string]any{"detail": detail})
		dropped := annotatedBy(t, "100 120 150x2", nil, map[string]any{"detail": detail, "distribution": "drop"})
		require.Contains(t, kept, "tokenpulse.inter_token_latency.sketch")
		maps.DeleteFunc(kept, func(name string, _ any) bool { return strings.HasSuffix(name, ".sketch") })
		require.Equal(t, kept, dropped)
	}
}

// With 7 tokens in 100 ms, the time per output token is a fraction without end.
func TestSeconds_AreRoundedToTheNanosecond(t *testing.T) {
	written := annotatedBy(t, "100 117x3 131x3 200", withUsage, map[string]any{"detail": "full"})
	for name, v := range written {
		seconds, isDouble := v.(float64)
		if !isDouble || slices.Contains([]string{"tokenpulse.decode.share", "tokenpulse.output_token_rate", "tokenpulse.request_token_rate"}, name) {
			continue
		}
		text := strconv.FormatFloat(seconds, 'f', -1, 64)
		_, fraction, _ := strings.Cut(text, ".")
		require.LessOrEqual(t, len(fraction), 9, "%s is %s", name, text)
	}
	require.InDelta(t, 0.1/98, written["tokenpulse.time_per_output_token"], 0.5e-9)
	require.InDelta(t, 98/0.1, written["tokenpulse.output_token_rate"], 1e-9, "a rate is not rounded")
	var s sketch.Sketch
	require.NoError(t, s.MergeBinary(written["tokenpulse.inter_token_latency.sketch"].([]byte)))
	require.InDelta(t, s.Sum()/float64(s.Count()), written["tokenpulse.inter_token_latency.mean"], 0.5e-9+1e-12)
	require.False(t, math.Signbit(latency.ToNanosecond(0)))
}
