package tokensliexporter

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// harness is an exporter that runs, and the address of its metrics.
type harness struct {
	exporter  exporter.Traces
	telemetry *componenttest.Telemetry
	url       string
}

func start(t testing.TB, change func(*Config)) *harness {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = freeAddress(t)
	if change != nil {
		change(config)
	}
	h := &harness{telemetry: componenttest.NewTelemetry(), url: "http://" + config.Server.NetAddr.Endpoint}
	var err error
	h.exporter, err = createTraces(t.Context(), newSettings(h.telemetry), config)
	require.NoError(t, err)
	require.NoError(t, h.exporter.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, h.exporter.Shutdown(context.Background()))
		require.NoError(t, h.telemetry.Shutdown(context.Background()))
	})
	return h
}

func newSettings(telemetry *componenttest.Telemetry) exporter.Settings {
	settings := exportertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type) // budgets are stored under it
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	return settings
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// What a scraper says it accepts.
const (
	text        = "text/plain; version=0.0.4"
	openMetrics = "application/openmetrics-text; version=1.0.0"
	protobuf    = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

func (h *harness) scrape(t testing.TB, accept string) (body []byte, contentType string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/metrics", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	body, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	return body, response.Header.Get("Content-Type")
}

func (h *harness) families(t testing.TB, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	body, contentType := h.scrape(t, accept)
	decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(http.Header{"Content-Type": {contentType}}))
	all := map[string]*dto.MetricFamily{}
	for {
		var family dto.MetricFamily
		err := decoder.Decode(&family)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[family.GetName()] = &family
	}
}

// theMetric returns the one metric of a family that has these labels among others.
func theMetric(t testing.TB, family *dto.MetricFamily, labels ...string) *dto.Metric {
	t.Helper()
	var found []*dto.Metric
	for _, m := range family.GetMetric() {
		if slices.IndexFunc(labels, func(l string) bool { return !slices.Contains(labelsOf(m), l) }) < 0 {
			found = append(found, m)
		}
	}
	require.Len(t, found, 1, "%v in %s", labels, family.GetName())
	return found[0]
}

func labelsOf(m *dto.Metric) (all []string) {
	for _, l := range m.Label {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	return all
}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

// batch returns spans of one service, with these attributes each.
func batch(spans ...map[string]any) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "chat")
	scope := resource.ScopeSpans().AppendEmpty()
	for i, attributes := range spans {
		span := scope.Spans().AppendEmpty()
		span.SetTraceID([16]byte{1, byte(i)})
		span.SetSpanID([8]byte{2, byte(i)})
		if err := span.Attributes().FromRaw(attributes); err != nil {
			panic(err)
		}
	}
	return traces
}

func encoded(values ...float64) []byte {
	var s sketch.Sketch
	for _, v := range values {
		s.Add(v, 1)
	}
	return s.AppendBinary(nil)
}

// everything returns a span that carries all the exporter reads.
func everything() map[string]any {
	return map[string]any{
		"tokenpulse.vantage":                    "server",
		"tokenpulse.outcome":                    "success",
		"tokenpulse.time_to_first_token":        0.5,
		"tokenpulse.time_to_first_output_token": 0.75,
		"tokenpulse.time_per_output_token":      0.02,
		"tokenpulse.request.duration":           2.0,
		"tokenpulse.queue.duration":             0.1,
		"tokenpulse.prefill.duration":           0.4,
		"tokenpulse.decode.duration":            1.5,
		"tokenpulse.output_token_rate":          50.0,
		"tokenpulse.request_token_rate":         38.0,
		"tokenpulse.token_count":                75, // what was reported wins
		"tokenpulse.inter_token_latency.max":    0.7,
		"tokenpulse.inter_token_latency.sketch": encoded(0.02, 0.02, 0.7),
		"tokenpulse.inter_chunk_latency.max":    0.75,
		"tokenpulse.inter_chunk_latency.sketch": encoded(0.04, 0.75),
		"tokenpulse.stall.count":                1,
		"tokenpulse.stall.duration":             0.75,
		"tokenpulse.slo.met":                    []any{"chat-tpot"},
		"tokenpulse.slo.breached":               []any{"chat-ttft"},
		"tokenpulse.slo.not_eligible":           []any{"answer-gap"},
		"gen_ai.provider.name":                  "vllm",
		"gen_ai.request.model":                  "llama",
		"gen_ai.operation.name":                 "chat",
		"gen_ai.usage.input_tokens":             100,
		"gen_ai.usage.output_tokens":            76,
		"gen_ai.usage.reasoning.output_tokens":  16,
		"gen_ai.usage.cache_read.input_tokens":  64,
	}
}

func with(changes map[string]any) map[string]any {
	attributes := everything()
	for key, v := range changes {
		if v == nil {
			delete(attributes, key)
			continue
		}
		attributes[key] = v
	}
	return attributes
}

const (
	itl  = "tokenpulse_inter_token_latency_seconds"
	ttft = "tokenpulse_time_to_first_token_seconds"
)

// The names and labels are promises: this is all there is, in every format.
func TestEverythingIsPublished(t *testing.T) {
	h := start(t, nil)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(everything())))
	series := []string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=llama", "service_name=chat", "vantage=server"}
	histograms := map[string]float64{ // and their sums
		"tokenpulse_time_to_first_token_seconds":        0.5,
		"tokenpulse_time_to_first_output_token_seconds": 0.75,
		"tokenpulse_time_per_output_token_seconds":      0.02,
		"tokenpulse_inter_token_latency_seconds":        0.74,
		"tokenpulse_inter_chunk_latency_seconds":        0.79,
		"tokenpulse_request_duration_seconds":           2,
		"tokenpulse_output_token_rate_per_second":       50,
	}
	counters := map[string]float64{
		"tokenpulse_requests_total outcome=success": 1,
		"tokenpulse_tokens_total type=input":        100,
		"tokenpulse_tokens_total type=output":       76,
		"tokenpulse_tokens_total type=reasoning":    16,
		"tokenpulse_tokens_total type=cached_input": 64,
		"tokenpulse_stalls_total ":                  1,
		"tokenpulse_stall_duration_seconds_total ":  0.75,
	}
	for slo, verdict := range map[string]string{"chat-tpot": "good", "chat-ttft": "bad", "answer-gap": "not_eligible", "all": "bad"} {
		for _, v := range []string{"good", "bad", "not_eligible"} {
			n := 0.0
			if v == verdict {
				n = 1
			}
			counters["tokenpulse_slo_requests_total slo="+slo+" verdict="+v] = n
		}
	}
	phases := map[string]float64{"queue": 0.1, "prefill": 0.4, "decode": 1.5}
	names := []string{"tokenpulse_phase_duration_seconds", "tokenpulse_phase_duration_quantile_seconds"}
	for name := range histograms {
		names = append(names, name, quantileOf(name))
	}
	for name := range counters {
		names = append(names, strings.Fields(name)[0])
	}
	for _, accept := range []string{text, protobuf} {
		families := h.families(t, accept)
		var got []string
		for name := range families {
			got = append(got, name)
		}
		require.ElementsMatch(t, slices.Compact(slices.Sorted(slices.Values(names))), got)
		for name, sum := range histograms {
			require.Len(t, families[name].Metric, 1)
			require.ElementsMatch(t, append([]string{"outcome=success"}, series...), labelsOf(families[name].Metric[0]))
			require.InDelta(t, sum, families[name].Metric[0].Histogram.GetSampleSum(), 1e-9, name)
			require.Len(t, families[quantileOf(name)].Metric, 15, "five quantiles of three windows")
		}
		for name, want := range counters {
			fields := strings.Fields(name)
			m := theMetric(t, families[fields[0]], fields[1:]...)
			require.ElementsMatch(t, append(fields[1:], series...), labelsOf(m))
			require.InDelta(t, want, value(m), 1e-9, name)
		}
		for phase, sum := range phases {
			m := theMetric(t, families["tokenpulse_phase_duration_seconds"], "phase="+phase)
			require.ElementsMatch(t, append([]string{"outcome=success", "phase=" + phase}, series...), labelsOf(m))
			require.InDelta(t, sum, m.Histogram.GetSampleSum(), 1e-9)
			require.Equal(t, sum, value(theMetric(t, families["tokenpulse_phase_duration_quantile_seconds"], "phase="+phase, "quantile=0.999", "window=1h")))
		}
		require.Equal(t, 0.5, value(theMetric(t, families["tokenpulse_time_to_first_token_quantile_seconds"], "quantile=0.5", "window=1m")))
		require.InEpsilon(t, 0.02, value(theMetric(t, families["tokenpulse_inter_token_latency_quantile_seconds"], "quantile=0.5", "window=5m")), 0.0055)
		require.Equal(t, 0.7, value(theMetric(t, families["tokenpulse_inter_token_latency_quantile_seconds"], "quantile=0.9", "window=5m")))
	}
}

func quantileOf(histogram string) string {
	for _, unit := range []string{"_per_second", "_seconds"} {
		if name, found := strings.CutSuffix(histogram, unit); found {
			return name + "_quantile" + unit
		}
	}
	return histogram
}

func TestFormatIsNegotiated(t *testing.T) {
	h := start(t, nil)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(everything())))
	for accept, want := range map[string]string{
		text:                         "text/plain",
		"*/*":                        "text/plain",
		openMetrics:                  "application/openmetrics-text",
		protobuf:                     "application/vnd.google.protobuf",
		protobuf + "," + openMetrics: "application/vnd.google.protobuf",
	} {
		_, contentType := h.scrape(t, accept)
		require.True(t, strings.HasPrefix(contentType, want), "%s got %s", accept, contentType)
	}
}

// Native buckets are decoded here by the letter of the format, and compared with
// counts made by the logarithm.
func TestNativeBucketsAreExact(t *testing.T) {
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
		require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(with(map[string]any{"tokenpulse.inter_token_latency.sketch": encoded(gaps...)}))))
	}
	native := h.families(t, protobuf)[itl].Metric[0].Histogram
	require.EqualValues(t, 6, native.GetSchema())
	require.Equal(t, zeros, native.GetZeroCount())
	require.Equal(t, want, decodeNative(native))
	require.Equal(t, total, native.GetSampleCount())
	last := native.Bucket[len(native.Bucket)-1]
	require.True(t, math.IsInf(last.GetUpperBound(), 1))
	require.Equal(t, total, last.GetCumulativeCount(), "classic and native add up to the same")
	require.Greater(t, len(native.PositiveSpan), 1, "there are holes to be skipped")
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

func TestClassicBucketsFollowTheConfiguration(t *testing.T) {
	h := start(t, func(c *Config) {
		c.ClassicBuckets = map[string][]float64{"time_to_first_token": {0.1, 0.2}, "phase.duration": {1}}
	})
	for _, v := range []float64{0.05, 0.1, 0.100001, 0.2, 3} {
		require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(with(map[string]any{"tokenpulse.time_to_first_token": v}))))
	}
	body, _ := h.scrape(t, text)
	for _, line := range []string{
		`le="0.1"} 2`, `le="0.2"} 4`, `le="+Inf"} 5`,
	} {
		require.Regexp(t, `(?m)^`+ttft+`_bucket\{.*`+strings.ReplaceAll(line, "+", `\+`)+`$`, string(body))
	}
	require.Len(t, h.families(t, protobuf)["tokenpulse_phase_duration_seconds"].Metric[0].Histogram.Bucket, 2)
	require.Equal(t, 0.001, h.families(t, protobuf)[itl].Metric[0].Histogram.Bucket[0].GetUpperBound(), "others keep theirs")
}

func TestExemplarsAndStartTimes(t *testing.T) {
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
	require.Regexp(t, `(?m)^`+itl+`_bucket\{.*le="0.75"\} 3 # `+labels+` 0\.7 \d`, string(body), "the request's largest gap")
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

func TestNativeExemplarsAreBoundedAndInOrder(t *testing.T) {
	h := start(t, nil)
	for i := range 20 {
		v := 600 / math.Pow(1.8, float64(i)) // each in a classic bucket below the one before
		traces := batch(with(map[string]any{"tokenpulse.time_to_first_token": v}))
		require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	}
	exemplars := h.families(t, protobuf)[ttft].Metric[0].Histogram.Exemplars
	require.Len(t, exemplars, maxNativeExemplars)
	require.True(t, slices.IsSortedFunc(exemplars, func(a, b *dto.Exemplar) int {
		return a.Timestamp.AsTime().Compare(b.Timestamp.AsTime())
	}))
	require.InEpsilon(t, 600/math.Pow(1.8, 19), exemplars[maxNativeExemplars-1].GetValue(), 1e-9, "the latest is there")
}

func TestNoExemplarWithoutTrace(t *testing.T) {
	h := start(t, nil)
	traces := batch(everything())
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID([16]byte{})
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	body, _ := h.scrape(t, openMetrics)
	require.NotContains(t, string(body), " # {")
}

func TestLabels(t *testing.T) {
	tests := map[string]struct {
		changes map[string]any
		want    []string // of the requests counter, sorted
	}{
		"the span wins over the resource": {
			map[string]any{"service.name": "span"},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=llama", "outcome=success", "service_name=span", "vantage=server"},
		},
		"what is missing or empty has no label": {
			map[string]any{"gen_ai.provider.name": "", "gen_ai.operation.name": nil, "tokenpulse.vantage": nil, "service.name": ""},
			[]string{"gen_ai_request_model=llama", "outcome=success", "service_name=chat"},
		},
		"numbers and truth make labels, lists do not": {
			map[string]any{"gen_ai.request.model": 7, "gen_ai.provider.name": true, "gen_ai.operation.name": []any{"a"}},
			[]string{"gen_ai_provider_name=true", "gen_ai_request_model=7", "outcome=success", "service_name=chat", "vantage=server"},
		},
		"newlines, quotes and backslashes": {
			map[string]any{"gen_ai.request.model": "a\n\"b\"\\c"},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=a\n\"b\"\\c", "outcome=success", "service_name=chat", "vantage=server"},
		},
		"bytes that are no UTF-8": {
			map[string]any{"gen_ai.request.model": "a\xffb"},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=a?b", "outcome=success", "service_name=chat", "vantage=server"},
		},
		"too long": {
			map[string]any{"gen_ai.request.model": strings.Repeat("x", 300)},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=" + strings.Repeat("x", 256), "outcome=success", "service_name=chat", "vantage=server"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := start(t, nil)
			require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(with(test.changes))))
			for _, accept := range []string{text, protobuf} {
				family := h.families(t, accept)["tokenpulse_requests_total"]
				require.Len(t, family.Metric, 1)
				require.Equal(t, test.want, labelsOf(family.Metric[0]))
			}
		})
	}
}

func TestPromtoolAcceptsTheText(t *testing.T) {
	tool := testenv.Program(t, "promtool")
	h := start(t, nil)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(everything(), with(map[string]any{"gen_ai.request.model": "a\n\"b\"\\c\xff"}))))
	body, _ := h.scrape(t, text)
	check := exec.CommandContext(t.Context(), tool, "check", "metrics")
	check.Stdin = bytes.NewReader(body)
	output, _ := check.CombinedOutput()
	for line := range strings.Lines(string(output)) {
		// The label of the gauges is a promise to users; the linter would keep it for summaries.
		require.Regexp(t, `_quantile_(per_second|seconds) non-(histogram and non-)?summary metrics should not have "quantile" label\n$`, line)
	}
}

func TestManyModelsStayBounded(t *testing.T) {
	const models, limit = 100_000, 50
	h := start(t, func(c *Config) { c.Shared.Series.MaxSeries = limit })
	for first := 0; first < models; first += 1000 {
		var spans []map[string]any
		for i := range 1000 {
			spans = append(spans, map[string]any{
				"tokenpulse.outcome": "success", "tokenpulse.time_to_first_token": 0.25,
				"gen_ai.request.model": fmt.Sprint("model-", first+i), "gen_ai.usage.output_tokens": 3,
			})
		}
		require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(spans...)))
	}
	families := h.families(t, protobuf)
	sum := func(name string) (n float64) {
		require.Len(t, families[name].Metric, limit+1)
		for _, m := range families[name].Metric {
			n += value(m) + float64(m.GetHistogram().GetSampleCount())
		}
		return n
	}
	require.EqualValues(t, models, sum("tokenpulse_requests_total"))
	require.EqualValues(t, models, sum(ttft))
	require.EqualValues(t, 3*models, sum("tokenpulse_tokens_total"))
	overflow := theMetric(t, families["tokenpulse_requests_total"], "otel_metric_overflow=true")
	require.Equal(t, []string{"otel_metric_overflow=true", "outcome=success"}, labelsOf(overflow))
	require.EqualValues(t, models-limit, value(overflow))

	require.EqualValues(t, models, keepertest.Value(t, h.telemetry, "token_sli_requests"))
	require.EqualValues(t, models-limit, keepertest.Value(t, h.telemetry, "token_sli_requests_overflow"))
	require.EqualValues(t, limit, keepertest.Value(t, h.telemetry, "token_sli_series"))
	require.EqualValues(t, limit, keepertest.Value(t, h.telemetry, "token_sli_series_limit"))
}

func TestMalformedAttributesLeaveTheRest(t *testing.T) {
	h := start(t, nil)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(with(map[string]any{
		"tokenpulse.time_to_first_token":        math.NaN(),
		"tokenpulse.time_to_first_output_token": math.Inf(1),
		"tokenpulse.time_per_output_token":      -0.02,
		"tokenpulse.request.duration":           1e12,
		"tokenpulse.queue.duration":             "0.1s",
		"gen_ai.usage.reasoning.output_tokens":  "16", // a number still
		"tokenpulse.inter_token_latency.sketch": []byte{1, 2, 3},
		"tokenpulse.inter_chunk_latency.sketch": nil,
		"gen_ai.usage.input_tokens":             -1,
		"gen_ai.usage.output_tokens":            1.5,
		"tokenpulse.token_count":                -1,
		"gen_ai.usage.cache_read.input_tokens":  int64(1e15),
		"tokenpulse.outcome":                    "splendid",
	}))))
	reasons := map[string]int64{"not_finite": 2, "negative": 3, "out_of_range": 2, "wrong_type": 2, "malformed_sketch": 1, "unknown_outcome": 1}
	require.Equal(t, reasons, keepertest.Values(t, h.telemetry, "token_sli_values_rejected", "reason"))
	families := h.families(t, protobuf)
	require.NotContains(t, families, ttft)
	require.NotContains(t, families, itl)
	require.Len(t, families["tokenpulse_tokens_total"].Metric, 1, "reasoning only")
	require.EqualValues(t, 16, value(theMetric(t, families["tokenpulse_tokens_total"], "type=reasoning")))
	require.Len(t, families["tokenpulse_phase_duration_seconds"].Metric, 2)
	require.EqualValues(t, 1, value(theMetric(t, families["tokenpulse_requests_total"], "outcome=success")))
}

func TestSpansOfOthersAreIgnored(t *testing.T) {
	h := start(t, nil)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(
		map[string]any{"http.request.method": "GET"},
		map[string]any{"gen_ai.request.model": "llama", "gen_ai.usage.input_tokens": "many"},
		map[string]any{"tokenpulse.outcome": "cancelled"},
	)))
	require.EqualValues(t, 2, keepertest.Value(t, h.telemetry, "token_sli_spans_ignored"))
	families := h.families(t, text)
	require.Len(t, families, 1)
	require.EqualValues(t, 1, value(theMetric(t, families["tokenpulse_requests_total"], "outcome=cancelled")))
}

func TestReading(t *testing.T) {
	tests := map[string]struct {
		changes map[string]any
		check   func(*testing.T, map[string]*dto.MetricFamily)
	}{
		"doubles that became integers": {
			map[string]any{"tokenpulse.time_to_first_token": 2, "gen_ai.usage.input_tokens": 7.0},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.EqualValues(t, 2, families[ttft].Metric[0].Histogram.GetSampleSum())
				require.EqualValues(t, 7, value(theMetric(t, families["tokenpulse_tokens_total"], "type=input")))
			},
		},
		"the tokens' gaps are the chunks' where these have none": {
			map[string]any{"tokenpulse.inter_chunk_latency.sketch": nil, "tokenpulse.inter_chunk_latency.max": nil},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				icl := families["tokenpulse_inter_chunk_latency_seconds"].Metric[0].Histogram
				require.EqualValues(t, 3, icl.GetSampleCount())
				require.InDelta(t, 0.74, icl.GetSampleSum(), 1e-9)
				require.Equal(t, 0.7, icl.Exemplars[0].GetValue())
			},
		},
		"but not where theirs is of the wrong type": {
			map[string]any{"tokenpulse.inter_chunk_latency.sketch": "?"},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.NotContains(t, families, "tokenpulse_inter_chunk_latency_seconds")
				require.Contains(t, families, itl)
			},
		},
		"output tokens that nobody reported are those seen": {
			map[string]any{"gen_ai.usage.output_tokens": nil},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.EqualValues(t, 75, value(theMetric(t, families["tokenpulse_tokens_total"], "type=output")))
			},
		},
		"without a count there are none": {
			map[string]any{"gen_ai.usage.output_tokens": nil, "tokenpulse.token_count": nil},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.Len(t, families["tokenpulse_tokens_total"].Metric, 3)
			},
		},
		"a sketch that is far too large": {
			map[string]any{"tokenpulse.inter_token_latency.sketch": make([]byte, 1<<20)},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.NotContains(t, families, itl)
				require.Contains(t, families, ttft)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := start(t, nil)
			require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(with(test.changes))))
			test.check(t, h.families(t, protobuf))
		})
	}
}

func TestOutcomeFallsBackOnStatus(t *testing.T) {
	h := start(t, nil)
	traces := batch(with(map[string]any{"tokenpulse.outcome": nil}), with(map[string]any{"tokenpulse.outcome": nil}))
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(ptrace.StatusCodeError)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	family := h.families(t, text)["tokenpulse_requests_total"]
	require.EqualValues(t, 1, value(theMetric(t, family, "outcome=error")))
	require.EqualValues(t, 1, value(theMetric(t, family, "outcome=success")))
}

func TestNoGaugesWithoutWindows(t *testing.T) {
	h := start(t, func(c *Config) { c.Windows = nil })
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(everything())))
	for name := range h.families(t, text) {
		require.NotContains(t, name, "quantile")
	}
}

func TestOnlyMetricsAreServed(t *testing.T) {
	h := start(t, nil)
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/metrics", 200},
		{http.MethodGet, "/", 404},
		{http.MethodGet, "/metrics/x", 404},
		{http.MethodPost, "/metrics", 405},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, h.url+test.path, http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, test.want, response.StatusCode, "%s %s", test.method, test.path)
	}
}

func TestPortIsReleasedAndTaken(t *testing.T) {
	first := start(t, nil)
	address := strings.TrimPrefix(first.url, "http://")
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = address
	second, err := createTraces(t.Context(), newSettings(componenttest.NewTelemetry()), config)
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context(), componenttest.NewNopHost()), "address already in use")
	require.NoError(t, second.Shutdown(t.Context()), "after a start that failed")
	require.NoError(t, first.exporter.Shutdown(t.Context()))
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	require.NoError(t, listener.Close())
}

func TestEveryHistogramIsInTheREADME(t *testing.T) {
	c, err := newCatalogue()
	require.NoError(t, err)
	readme := readFile(t, "README.md")
	for _, f := range c.families {
		require.Contains(t, readme, "`"+f.name+"`")
	}
}

// Intake goes on while the metrics are scraped, and at the end all is there.
func TestScrapingDuringIntakeLosesNothing(t *testing.T) {
	const writers, each = 4, 300
	h := start(t, nil)
	traces := batch(everything(), with(map[string]any{"gen_ai.request.model": "other", "tokenpulse.outcome": "error"}))
	var writing, scraping sync.WaitGroup
	ctx, done := context.WithCancel(t.Context())
	scraping.Go(func() {
		for ctx.Err() == nil {
			for _, family := range h.families(t, protobuf) {
				for _, m := range family.Metric {
					requireWhole(t, m.GetHistogram())
				}
			}
		}
	})
	for range writers {
		writing.Go(func() {
			for range each {
				if err := h.exporter.ConsumeTraces(t.Context(), traces); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	done()
	scraping.Wait()
	for _, outcome := range []string{"success", "error"} {
		families := h.families(t, protobuf)
		require.EqualValues(t, writers*each, value(theMetric(t, families["tokenpulse_requests_total"], "outcome="+outcome)))
		require.EqualValues(t, 3*writers*each, theMetric(t, families[itl], "outcome="+outcome).Histogram.GetSampleCount())
	}
}

// requireWhole checks that a histogram was not read halfway through a request.
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

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}

func TestResourcesDoNotLeakIntoEachOther(t *testing.T) {
	h := start(t, nil)
	traces := batch(everything())
	nameless := traces.ResourceSpans().AppendEmpty()
	require.NoError(t, nameless.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes().FromRaw(everything()))
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	family := h.families(t, text)["tokenpulse_requests_total"]
	require.Len(t, family.Metric, 2)
	require.EqualValues(t, 1, value(theMetric(t, family, "service_name=chat")))
}

// Who never finishes asking cannot hold up the end.
func TestShutdownHonoursItsDeadline(t *testing.T) {
	h := start(t, nil)
	connection, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	_, err = connection.Write([]byte("GET /metrics HTTP/1.1\r\n"))
	require.NoError(t, err)
	// Connections are accepted in their order: once a later one is served, the
	// server knows of this one.
	response, err := http.Get(h.url + "/metrics")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, h.exporter.Shutdown(ctx), context.DeadlineExceeded)
	require.NoError(t, connection.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = connection.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection was closed")
}
