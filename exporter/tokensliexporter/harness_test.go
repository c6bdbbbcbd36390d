// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
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

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// harness is a started exporter and the URL of its server.
type harness struct {
	config    *Config
	exporter  exporter.Traces
	telemetry *componenttest.Telemetry
	url       string
}

func start(t testing.TB, change func(*Config)) *harness {
	t.Helper()
	return startOn(t, componenttest.NewNopHost(), change)
}

// startOn starts an exporter in a Collector with extensions. It is shut down at the end of the test.
func startOn(t testing.TB, host component.Host, change func(*Config)) *harness {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = testenv.FreeAddress(t)
	if change != nil {
		change(config)
	}
	h := &harness{config: config, telemetry: componenttest.NewTelemetry(), url: "http://" + config.Server.NetAddr.Endpoint}
	var err error
	h.exporter, err = createTraces(t.Context(), newSettings(h.telemetry), config)
	require.NoError(t, err)
	require.NoError(t, h.exporter.Start(t.Context(), host))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, h.exporter.Shutdown(context.Background()))
		require.NoError(t, h.telemetry.Shutdown(context.Background()))
	})
	return h
}

// unstarted returns an exporter that is not started.
func unstarted(t testing.TB, change func(*Config)) (*tokenSLI, *componenttest.Telemetry) {
	t.Helper()
	config := createDefaultConfig().(*Config)
	if change != nil {
		change(config)
	}
	telemetry := componenttest.NewTelemetry()
	e, err := newTokenSLI(newSettings(telemetry), config)
	require.NoError(t, err)
	return e, telemetry
}

// send sends one span with each of these attributes.
func (h *harness) send(t testing.TB, spans ...map[string]any) {
	t.Helper()
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(spans...)))
}

// request sends a request with headers, names and values in turns, and returns the response and its body.
func (h *harness) request(t testing.TB, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.url+path, http.NoBody)
	require.NoError(t, err)
	for header := range slices.Chunk(headers, 2) {
		r.Header.Set(header[0], header[1])
	}
	r.Host = r.Header.Get("Host")
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

// get returns the response to a GET, and its body.
func (h *harness) get(t testing.TB, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	return h.request(t, http.MethodGet, path, headers...)
}

// everyMetric switches all metrics on, with percentiles of three windows.
func everyMetric(c *Config) {
	c.Shared.Metrics = map[string]keeper.Metric{}
	for _, name := range series.MetricNames() {
		c.Shared.Metrics[name] = keeper.Metric{Enabled: true}
	}
	c.Percentiles = []float64{50, 90, 95, 99, 99.9}
	c.Windows = []time.Duration{time.Minute, 5 * time.Minute, time.Hour}
}

func newSettings(telemetry *componenttest.Telemetry) exporter.Settings {
	settings := exportertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type) // budgets are stored under it
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	return settings
}

// Accept headers of scrapers.
const (
	text        = "text/plain; version=0.0.4"
	openMetrics = "application/openmetrics-text; version=1.0.0"
	protobuf    = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

func (h *harness) scrape(t testing.TB, accept string) (body []byte, contentType string) {
	t.Helper()
	response, text := h.get(t, metricsPath, "Accept", accept)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return []byte(text), response.Header.Get("Content-Type")
}

func (h *harness) families(t testing.TB, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	body, contentType := h.scrape(t, accept)
	all := map[string]*dto.MetricFamily{}
	for _, family := range decoded(t, bytes.NewReader(body), expfmt.ResponseFormat(http.Header{"Content-Type": {contentType}})) {
		all[family.GetName()] = family
	}
	return all
}

func decoded(t testing.TB, body io.Reader, format expfmt.Format) (all []*dto.MetricFamily) {
	t.Helper()
	decoder := expfmt.NewDecoder(body, format)
	for {
		var family dto.MetricFamily
		err := decoder.Decode(&family)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, &family)
	}
}

// rendered returns a rendering as protobuf, without young zeros.
func (e *tokenSLI) rendered() (*exposition.Body, error) {
	return e.gatherer.render(variant{Format: exposition.Format{Type: expfmt.TypeProtoDelim}}, func() bool { return false })
}

// families returns what such a rendering has, in the order of the names.
func (e *tokenSLI) families(t testing.TB) []*dto.MetricFamily {
	t.Helper()
	body, err := e.rendered()
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = body.WriteTo(&b)
	require.NoError(t, err)
	return decoded(t, &b, expfmt.NewFormat(expfmt.TypeProtoDelim))
}

// theMetric returns the only metric of a family that has these labels. It may have more.
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

var batch = keepertest.Batch

// again gives the spans of a batch new IDs, as those of other requests.
func again(traces ptrace.Traces) ptrace.Traces {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				keepertest.Identify(span)
			}
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

// everything returns every attribute that the exporter reads.
func everything() map[string]any {
	return map[string]any{
		"tokenpulse.vantage":                     "server",
		"tokenpulse.outcome":                     "success",
		"tokenpulse.time_to_first_token":         0.5,
		"tokenpulse.time_to_first_output_token":  0.75,
		"tokenpulse.time_per_output_token":       0.02,
		"tokenpulse.request.duration":            2.0,
		"tokenpulse.queue.duration":              0.1,
		"tokenpulse.prefill.duration":            0.4,
		"tokenpulse.decode.duration":             1.5,
		"tokenpulse.network.duration":            0.05,
		"tokenpulse.transfer.duration":           0.15,
		"tokenpulse.trace.time_to_answer":        3.0,
		"tokenpulse.output_token_rate":           50.0,
		"tokenpulse.request_token_rate":          38.0,
		"tokenpulse.prefill_token_rate":          90.0,
		"tokenpulse.time_per_token.from_0":       0.125,
		"tokenpulse.time_per_token.from_10":      0.25,
		"tokenpulse.time_per_token.from_100":     0.375,
		"tokenpulse.time_per_token.from_1000":    0.5,
		"tokenpulse.token_count":                 75, // ignored: the reported number counts
		"tokenpulse.inter_token_latency.max":     0.7,
		"tokenpulse.inter_token_latency.sketch":  encoded(0.02, 0.02, 0.7),
		"tokenpulse.inter_chunk_latency.max":     0.75,
		"tokenpulse.inter_chunk_latency.sketch":  encoded(0.04, 0.75),
		"tokenpulse.tokens_per_chunk.sketch":     encoded(1, 4, 70),
		"tokenpulse.time_to_first_audio":         0.35,
		"tokenpulse.audio.real_time_factor":      1.5,
		"tokenpulse.stall.count":                 1,
		"tokenpulse.stall.duration":              0.75,
		"tokenpulse.speculative.accepted_tokens": 9,
		"tokenpulse.speculative.draft_tokens":    12,
		"tokenpulse.slo.met":                     []any{"chat-tpot"},
		"tokenpulse.slo.breached":                []any{"chat-ttft"},
		"tokenpulse.slo.not_eligible":            []any{"answer-gap"},
		"gen_ai.provider.name":                   "vllm",
		"gen_ai.request.model":                   "llama",
		"gen_ai.operation.name":                  "chat",
		"gen_ai.usage.input_tokens":              100,
		"gen_ai.usage.output_tokens":             76,
		"gen_ai.usage.reasoning.output_tokens":   16,
		"gen_ai.usage.cache_read.input_tokens":   64,
		"gen_ai.usage.cache_write.input_tokens":  32,

		"tokenpulse.inter_audio_chunk_latency.sketch": encoded(0.06, 0.25),
	}
}

// everyNumber returns everything, and 1 for each further number that has a metric, so that every metric has a value.
func everyNumber() map[string]any {
	all := everything()
	for id := range numbers.Count {
		if _, given := all[id.Attribute()]; !given && id.Row().Metric.Name != "" {
			all[id.Attribute()] = 1
		}
	}
	return all
}

// with returns the attributes of everything with changes. A nil value removes a key.
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

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}
