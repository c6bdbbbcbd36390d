// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
)

// The same spans with whole traces and without.
const repeatsPipelines = `
receivers:
  otlp: {protocols: {http: {endpoint: "${env:OTLP}"}}}
processors:
  groupbytrace: {wait_duration: 1s}
  token_latency: {}
  token_latency/whole: {join: true}
connectors:
  token_sli:
exporters:
  token_sli/whole: {endpoint: "${env:WHOLE}", zero_for: 0s, conventions: {gen_ai: [latest]}}
  token_sli/alone: {endpoint: "${env:ALONE}", zero_for: 0s}
  file: {path: "${env:SENT}"}
service:
  pipelines:
    traces/whole: {receivers: [otlp], processors: [groupbytrace, token_latency/whole], exporters: [token_sli/whole, token_sli]}
    traces/alone: {receivers: [otlp], processors: [token_latency], exporters: [token_sli/alone]}
    metrics: {receivers: [token_sli], exporters: [file]}
`

// A framework and the SDK below it send a span each. Both report the first token and the model, the framework alone the
// tokens.
const repeatedCall = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"app"}}]},"scopeSpans":[
{"scope":{"name":"framework"},"spans":[{"traceId":"09090909090909090909090909090909","spanId":"0000000000002001","name":"chat m","kind":3,
	"startTimeUnixNano":"1795727300494000000","endTimeUnixNano":"1795727303494000000","attributes":[
	{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"openai/m"}},
	{"key":"gen_ai.response.time_to_first_chunk","value":{"doubleValue":0.52}},
	{"key":"gen_ai.usage.input_tokens","value":{"intValue":"100"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"51"}}]}]},
{"scope":{"name":"sdk"},"spans":[{"traceId":"09090909090909090909090909090909","spanId":"0000000000002002","parentSpanId":"0000000000002001","name":"chat m","kind":3,
	"startTimeUnixNano":"1795727300499000000","endTimeUnixNano":"1795727303484000000","attributes":[
	{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},
	{"key":"gen_ai.response.time_to_first_chunk","value":{"doubleValue":0.5}}]}]}]}]}`

// With whole traces, the call counts once: in the metrics of the exporter, in the standard ones and in those of the
// connector. Without, it counts twice, and the exporter says why, once.
func TestRepeatedCall_CountsOnceOrRaisesADoubt(t *testing.T) {
	t.Parallel()
	endpoint, whole, alone, sent := collector.FreeAddress(t), collector.FreeAddress(t), collector.FreeAddress(t), filepath.Join(t.TempDir(), "metrics.jsonl")
	for name, value := range map[string]string{"OTLP": endpoint, "WHOLE": whole, "ALONE": alone, "SENT": sent} {
		collector.Setenv(t, name, value)
	}
	c := collector.StartProcess(t, collector.Built(t, "otelcol-tokenpulse"), "--config", collector.WriteFile(t, t.TempDir(), "config.yaml", repeatsPipelines), collector.OwnMetricsOff)
	c.WaitUntilReady(t)
	collector.PostSpans(t, endpoint, "application/json", []byte(repeatedCall))

	var once map[string]*dto.MetricFamily
	require.Eventually(t, func() bool {
		once = exposition.ScrapeAny(t, "http://"+whole+"/metrics")
		return once["tokenpulse_requests_total"] != nil
	}, collector.Patience, 50*time.Millisecond)
	require.InDelta(t, 1, exposition.SumOf(t, once, "tokenpulse_requests_total", nil), 0)
	require.InDelta(t, 100, exposition.SumOf(t, once, "tokenpulse_tokens_total", map[string]string{"type": "input"}), 0)
	require.InDelta(t, 51, exposition.SumOf(t, once, "tokenpulse_tokens_total", map[string]string{"type": "output"}), 0)
	first := once["tokenpulse_time_to_first_token_seconds"].GetMetric()
	require.Len(t, first, 1)
	require.InDelta(t, 0.5, first[0].GetHistogram().GetSampleSum(), 1e-9)
	standard := once["gen_ai_client_inference_duration_seconds"].GetMetric()
	require.Len(t, standard, 1)
	require.EqualValues(t, 1, standard[0].GetHistogram().GetSampleCount())

	twice := exposition.ScrapeAny(t, "http://"+alone+"/metrics")
	require.InDelta(t, 2, exposition.SumOf(t, twice, "tokenpulse_requests_total", nil), 0)
	c.Stop(t)
	require.InDelta(t, 1, requestsIn(t, sent), 0)

	warnings := regexp.MustCompile(`(?m)^.*\twarn\t.*two instrumentations.*"otelcol.component.id": "(.*?)".*$`).FindAllStringSubmatch(c.Output(t), -1)
	require.Len(t, warnings, 1)
	require.Equal(t, "token_sli/alone", warnings[0][1])
	for _, text := range []string{"switch one of them off", "groupbytrace", "`join: true`", `"framework"`, `"sdk"`} {
		require.Contains(t, warnings[0][0], text)
	}
}

// requestsIn returns the requests of the last metrics in a file.
func requestsIn(t *testing.T, file string) (n float64) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	metrics, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics([]byte(lines[len(lines)-1]))
	require.NoError(t, err)
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if metric.Name() != "tokenpulse.requests" {
					continue
				}
				for _, point := range metric.Sum().DataPoints().All() {
					n += point.DoubleValue() + float64(point.IntValue())
				}
			}
		}
	}
	return n
}
