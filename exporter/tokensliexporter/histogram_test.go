// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// Native buckets are decoded as Prometheus does and compared with counts by logarithm.
func TestScrape_NativeBucketsAreExact(t *testing.T) {
	h := start(t, nil)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[int]uint64{}
	zeros, total := uint64(0), uint64(0)
	for range 50 {
		var gaps []float64
		for range 100 {
			v := 0.02 * math.Exp(2*random.NormFloat64())
			if random.IntN(20) == 0 {
				v = 0
				zeros++
			} else {
				want[int(math.Ceil(math.Log2(v)*64))]++
			}
			gaps = append(gaps, v)
			total++
		}
		h.send(t, with(map[string]any{"tokenpulse.inter_token_latency.sketch": encoded(gaps...), "tokenpulse.token_count": 101}))
	}
	native := h.families(t, protobuf)[itl].Metric[0].Histogram
	require.EqualValues(t, 6, native.GetSchema())
	require.Equal(t, zeros, native.GetZeroCount())
	require.Equal(t, want, decodeNative(native))
	require.Equal(t, total, native.GetSampleCount())
	last := native.Bucket[len(native.Bucket)-1]
	require.True(t, math.IsInf(last.GetUpperBound(), 1))
	require.Equal(t, total, last.GetCumulativeCount(), "classic and native buckets have the same total")
	require.Greater(t, len(native.PositiveSpan), 1, "the test has gaps between spans")
}

func decodeNative(h *dto.Histogram) map[int]uint64 {
	buckets := map[int]uint64{}
	index, delta, count := 0, 0, int64(0)
	for _, span := range h.PositiveSpan {
		index += int(span.GetOffset())
		for range span.GetLength() {
			count += h.PositiveDelta[delta]
			if count != 0 {
				buckets[index] = uint64(count)
			}
			index++
			delta++
		}
	}
	return buckets
}

func TestScrape_ClassicBucketsFollowTheConfiguration(t *testing.T) {
	h := start(t, func(c *Config) {
		c.ClassicBuckets = map[string][]float64{"time_to_first_token": {0.1, 0.2}, "phase.duration": {1}}
	})
	for _, v := range []float64{0.05, 0.1, 0.100001, 0.2, 3} {
		h.send(t, with(map[string]any{"tokenpulse.time_to_first_token": v}))
	}
	body, _ := h.scrape(t, text)
	for _, line := range []string{
		`le="0.1"} 2`, `le="0.2"} 4`, `le="+Inf"} 5`,
	} {
		require.Regexp(t, `(?m)^`+ttft+`_bucket\{.*`+strings.ReplaceAll(line, "+", `\+`)+`$`, string(body))
	}
	require.Len(t, h.families(t, protobuf)["tokenpulse_phase_duration_seconds"].Metric[0].Histogram.Bucket, 2)
	require.Equal(t, 0.001, h.families(t, protobuf)[itl].Metric[0].Histogram.Bucket[0].GetUpperBound(), "other histograms keep the default bounds")
}

func TestScrape_HasExemplarsAndStartTimes(t *testing.T) {
	h := start(t, nil)
	before := time.Now()
	traces := batch(everything())
	traceID, spanID := [16]byte{0xab, 15: 1}, [8]byte{0xcd, 7: 2}
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID(traceID)
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetSpanID(spanID)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	after := time.Now()

	body, _ := h.scrape(t, openMetrics)
	labels := fmt.Sprintf(`\{span_id="%s",trace_id="%s"\}`, hex.EncodeToString(spanID[:]), hex.EncodeToString(traceID[:]))
	require.Regexp(t, `(?m)^`+ttft+`_bucket\{.*le="0.5"\} 1 # `+labels+` 0\.5 \d`, string(body))
	require.Regexp(t, `(?m)^`+itl+`_bucket\{.*le="1\.0"\} 3 # `+labels+` 0\.7 \d`, string(body), "the request's largest gap")
	require.Regexp(t, `(?m)^`+ttft+`_created\{`, string(body))
	require.Regexp(t, `(?m)^tokenpulse_requests_created\{`, string(body))
	require.Regexp(t, `(?m)^# UNIT `+ttft+` seconds$`, string(body))
	require.True(t, bytes.HasSuffix(body, []byte("# EOF\n")))

	families := h.families(t, protobuf)
	native := families[itl].Metric[0].Histogram
	require.Len(t, native.Exemplars, 1)
	require.Equal(t, 0.7, native.Exemplars[0].GetValue())
	for _, at := range []time.Time{
		native.CreatedTimestamp.AsTime(),
		native.Exemplars[0].Timestamp.AsTime(),
		theMetric(t, families["tokenpulse_tokens_total"], "type=input").Counter.CreatedTimestamp.AsTime(),
		families["tokenpulse_requests_total"].Metric[0].Counter.CreatedTimestamp.AsTime(),
	} {
		require.False(t, at.Before(before.Truncate(0)), at)
		require.False(t, at.After(after), at)
	}
}

func TestScrape_NativeExemplarsAreTheLatestInOrder(t *testing.T) {
	h := start(t, nil)
	for i := range 20 {
		v := 600 / math.Pow(1.8, float64(i)) // each in a lower classic bucket
		traces := batch(with(map[string]any{"tokenpulse.time_to_first_token": v}))
		require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	}
	exemplars := h.families(t, protobuf)[ttft].Metric[0].Histogram.Exemplars
	require.Len(t, exemplars, maxNativeExemplars)
	require.True(t, slices.IsSortedFunc(exemplars, func(a, b *dto.Exemplar) int {
		return a.Timestamp.AsTime().Compare(b.Timestamp.AsTime())
	}))
	require.InEpsilon(t, 600/math.Pow(1.8, 19), exemplars[maxNativeExemplars-1].GetValue(), 1e-9, "the latest is included")
}

func TestScrape_NoExemplarWithoutTraceID(t *testing.T) {
	h := start(t, nil)
	traces := batch(everything())
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID([16]byte{})
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	body, _ := h.scrape(t, openMetrics)
	require.NotContains(t, string(body), " # {")
}

// requireWhole checks that a histogram was not read in the middle of a request.
func requireWhole(t *testing.T, h *dto.Histogram) {
	if h == nil {
		return
	}
	native := h.GetZeroCount()
	for _, n := range decodeNative(h) {
		native += n
	}
	if classic := h.Bucket[len(h.Bucket)-1].GetCumulativeCount(); native != h.GetSampleCount() || classic != h.GetSampleCount() {
		t.Errorf("count %d, native %d, classic %d", h.GetSampleCount(), native, classic)
	}
}
