// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// shown returns the counters and counts that a scrape shows, as "name{labels} value". As Prometheus or as another
// client, it sees the same samples.
func shown(t *testing.T, e *tokenSLI, header, accept string) map[string]float64 {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, metricsPath, http.NoBody)
	r.Header.Set("Accept", accept)
	if header != "" {
		r.Header.Set(header, "10")
	}
	w := httptest.NewRecorder()
	e.metrics().ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	samples := map[string]float64{}
	for _, family := range decoded(t, w.Body, expfmt.ResponseFormat(w.Header())) {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			slices.Sort(labels)
			name := fmt.Sprintf("%s{%s}", family.GetName(), strings.Join(labels, ","))
			switch {
			case m.Counter != nil:
				samples[name] = m.Counter.GetValue()
			case m.Histogram != nil:
				samples[name+" count"] = float64(m.Histogram.GetSampleCount())
				samples[name+" sum"] = m.Histogram.GetSampleSum()
				for _, b := range m.Histogram.Bucket {
					samples[fmt.Sprint(name, " ", b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				for i, delta := range m.Histogram.PositiveDelta {
					samples[fmt.Sprint(name, " native ", i)] = float64(delta)
				}
			}
		}
	}
	return samples
}

// every returns the samples whose name begins with a prefix and holds all parts.
func every(samples map[string]float64, prefix string, parts ...string) (values []float64) {
	for name, v := range samples {
		if strings.HasPrefix(name, prefix) && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(name, part) }) {
			values = append(values, v)
		}
	}
	return values
}

func judgedSpan(outcome, errorType string, slos ...any) map[string]any {
	span := map[string]any{
		"gen_ai.request.model": "m", "tokenpulse.outcome": outcome, "tokenpulse.vantage": "server",
		"tokenpulse.time_to_first_token": 0.2, "gen_ai.usage.output_tokens": 7,
	}
	if errorType != "" {
		span["error.type"] = errorType
	}
	if outcome == "success" {
		span["tokenpulse.slo.met"] = slos
	} else {
		span["tokenpulse.slo.breached"] = slos
	}
	return span
}

func withErrorType(c *Config) {
	c.Shared.Series.Dimensions = series.DimensionsOf("gen_ai.request.model", "error.type")
}

// A new sample is 0 for zero_for, for Prometheus only, and in all formats.
func TestZeroFor_PrometheusSeesNewCountersAtZeroFirst(t *testing.T) {
	for _, accept := range []string{text, protobuf} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := unstarted(t, func(c *Config) { c.ZeroFor = 20 * time.Second })
			defer e.keeper.Shutdown(t.Context())
			require.NoError(t, e.consume(t.Context(), batch(judgedSpan("success", "", "a"))))
			truth := shown(t, e, "", accept)
			require.Equal(t, []float64{1}, every(truth, "tokenpulse_requests_total"))
			require.Equal(t, []float64{7}, every(truth, "tokenpulse_tokens_total", "type=output"))
			require.Equal(t, []float64{1}, every(truth, "tokenpulse_time_to_first_token_seconds{", " count"))
			scraped := shown(t, e, scraperHeader, accept)
			require.Len(t, scraped, len(every(truth, ""))-len(every(truth, "", " native ")), "all samples but native buckets")
			for name, v := range scraped {
				require.Zero(t, v, name)
			}
			time.Sleep(19999 * time.Millisecond)
			for name, v := range shown(t, e, scraperHeader, accept) {
				require.Zero(t, v, name)
			}
			time.Sleep(time.Millisecond)
			require.Equal(t, truth, shown(t, e, scraperHeader, accept))
		})
	}
}

// An outcome, a cause, a reason, a token type and a histogram that begin later than their series are new, too.
func TestZeroFor_LabelValuesHaveTheirOwnAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := unstarted(t, func(c *Config) { c.ZeroFor = 20 * time.Second })
		defer e.keeper.Shutdown(t.Context())
		require.NoError(t, e.consume(t.Context(), batch(judgedSpan("success", "", "a"))))
		time.Sleep(time.Minute)
		failed := judgedSpan("error", "", "a")
		failed["tokenpulse.unmeasured"] = []any{"time_per_output_token=one_token"}
		later := judgedSpan("success", "", "a")
		later["tokenpulse.time_per_output_token"], later["gen_ai.usage.input_tokens"] = 0.02, 11
		require.NoError(t, e.consume(t.Context(), batch(failed, later)))
		scraped := shown(t, e, scraperHeader, protobuf)
		for name, want := range map[string]float64{
			"tokenpulse_requests_total outcome=error": 0, "tokenpulse_requests_total outcome=success": 2,
			"tokenpulse_requests_failed_total": 0, "tokenpulse_requests_unmeasured_total": 0,
			"tokenpulse_tokens_total type=output": 21, "tokenpulse_tokens_total type=input": 0,
			"tokenpulse_time_per_output_token_seconds{  count": 0, "tokenpulse_time_to_first_token_seconds{ outcome=success  count": 2,
			"tokenpulse_slo_requests_total slo=a, verdict=bad": 1, "tokenpulse_slo_requests_total slo=a, verdict=good": 2,
		} {
			parts := strings.SplitN(name, " ", 2)
			labels := ""
			if len(parts) == 2 {
				labels = parts[1]
			}
			require.Equal(t, []float64{want}, every(scraped, parts[0], strings.Fields(labels)...), name)
		}
		time.Sleep(20 * time.Second)
		require.Equal(t, shown(t, e, "", protobuf), shown(t, e, scraperHeader, protobuf))
	})
}

func TestZeroFor_ZeroShowsNewCountersAtOnce(t *testing.T) {
	e, _ := unstarted(t, func(c *Config) { c.ZeroFor = 0 })
	defer e.keeper.Shutdown(t.Context())
	require.NoError(t, e.consume(t.Context(), batch(judgedSpan("success", "", "a"))))
	require.Equal(t, []float64{1}, every(shown(t, e, scraperHeader, text), "tokenpulse_requests_total"))
}

// Verdicts on requests that differ in their error only are in one counter, which is old when the error is new.
func TestVerdicts_LeaveOutTheErrorType(t *testing.T) {
	e, _ := unstarted(t, withErrorType)
	defer e.keeper.Shutdown(t.Context())
	require.NoError(t, e.consume(t.Context(), batch(
		judgedSpan("success", "", "a"), judgedSpan("success", "", "a"), judgedSpan("error", "503", "a"), judgedSpan("error", "timeout", "a"),
	)))
	samples := shown(t, e, "", protobuf)
	require.Empty(t, every(samples, "tokenpulse_slo_requests_total", "error_type"))
	require.Equal(t, []float64{2}, every(samples, "tokenpulse_slo_requests_total", "slo=a,", "verdict=good"))
	require.Equal(t, []float64{2}, every(samples, "tokenpulse_slo_requests_total", "slo=a,", "verdict=bad"))
	for _, errorType := range []string{"503", "timeout"} {
		require.Equal(t, []float64{1}, every(samples, "tokenpulse_requests_total", "error_type="+errorType))
	}
}
