// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func table(t *testing.T, rows []Row) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, rows))
	return out.String()
}

// exporter is Prometheus' own client library with the metrics of the token_sli exporter.
type exporter struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	latencies map[string]*prometheus.HistogramVec
}

func newExporter() *exporter {
	labels := []string{"gen_ai_request_model", "service_name", "vantage", "outcome"}
	e := &exporter{registry: prometheus.NewRegistry(), latencies: map[string]*prometheus.HistogramVec{}}
	e.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tokenpulse_requests_total", Help: "x"}, labels)
	e.registry.MustRegister(e.requests)
	for indicator, name := range map[string]string{
		"TTFT": "tokenpulse_time_to_first_token_seconds", "ITL": "tokenpulse_inter_token_latency_seconds", "TPOT": "tokenpulse_time_per_output_token_seconds",
	} {
		e.latencies[indicator] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: "x", NativeHistogramBucketFactor: 1.011}, labels)
		e.registry.MustRegister(e.latencies[indicator])
	}
	return e
}

// record records a request of a model, with its TTFT and TPOT, and two ITLs.
func (e *exporter) record(model, outcome string, ttft, tpot float64, itl ...float64) {
	labels := []string{model, "chat", "server", outcome}
	e.requests.WithLabelValues(labels...).Inc()
	e.latencies["TTFT"].WithLabelValues(labels...).Observe(ttft)
	e.latencies["TPOT"].WithLabelValues(labels...).Observe(tpot)
	for _, gap := range itl {
		e.latencies["ITL"].WithLabelValues(labels...).Observe(gap)
	}
}

func (e *exporter) scrape(t *testing.T) Totals {
	t.Helper()
	server := httptest.NewServer(promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{}))
	defer server.Close()
	totals, err := Scrape(t.Context(), server.Client(), server.URL)
	require.NoError(t, err)
	return totals
}

// requireRow compares a row with the request count, and with the count and the median of each
// indicator.
func requireRow(t *testing.T, row *Row, requests float64, counts []uint64, medians []float64) {
	t.Helper()
	require.InDelta(t, requests, total(row.Requests), 0)
	for i, title := range []string{"TTFT", "ITL", "TPOT"} {
		require.Equal(t, counts[i], row.Latencies[i].Count(), title)
		if counts[i] > 0 {
			require.InEpsilon(t, medians[i], row.Latencies[i].Quantile(0.5), 0.0056, title)
		}
	}
}

var begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func TestTotals_HaveAllRequestsAndSuccessfulLatencies(t *testing.T) {
	e := newExporter()
	for i := range 99 {
		e.record("llama", "success", 0.1+float64(i)/1000, 0.03, 0.02, 0.04, 0.02)
	}
	e.record("llama", "error", 9, 9, 9)
	e.record("gpt", "cancelled", 9, 9)
	rows := e.scrape(t).Rows()
	require.Len(t, rows, 2)
	require.Equal(t, "gpt", rows[0].Model)
	requireRow(t, &rows[0], 1, []uint64{0, 0, 0}, nil)
	requireRow(t, &rows[1], 100, []uint64{99, 297, 99}, []float64{0.149, 0.02, 0.03})
	require.InEpsilon(t, 0.194, rows[1].Latencies[0].Quantile(0.95), 0.0056, "rank 95 of 99")
}

// Requests before the window count in no column.
func TestWindow_IsTheSameForAllColumns(t *testing.T) {
	e := newExporter()
	for range 100 {
		e.record("llama", "success", 5, 1, 1)
	}
	e.record("idle", "success", 5, 1, 1)
	w := &Window{Length: time.Minute}
	w.Add(begin, e.scrape(t))
	rows, covers := w.Rows()
	require.Empty(t, rows, "requests before the first scrape")
	require.Zero(t, covers)

	e.record("llama", "success", 0.2, 0.02, 0.01, 0.03)
	e.record("llama", "error", 1, 1)
	e.record("new", "success", 0.3, 0.03)
	w.Add(begin.Add(30*time.Second), e.scrape(t))
	rows, covers = w.Rows()
	require.Equal(t, 30*time.Second, covers)
	require.Len(t, rows, 2)
	requireRow(t, &rows[0], 2, []uint64{1, 2, 1}, []float64{0.2, 0.01, 0.02})
	requireRow(t, &rows[1], 1, []uint64{1, 0, 1}, []float64{0.3, 0, 0.03})

	e.record("llama", "success", 0.4, 0.04)
	w.Add(begin.Add(61*time.Second), e.scrape(t))
	rows, covers = w.Rows()
	require.Equal(t, 31*time.Second, covers)
	require.Len(t, rows, 1)
	requireRow(t, &rows[0], 1, []uint64{1, 0, 1}, []float64{0.4, 0, 0.04})
}

// A Collector that restarts counts from 0 again, and may have more requests than before.
func TestWindow_GoesOnAfterRestart(t *testing.T) {
	w := &Window{Length: time.Minute}
	before := newExporter()
	w.Add(begin, before.scrape(t))
	for range 3 {
		before.record("llama", "success", 0.2, 0.02)
	}
	w.Add(begin.Add(2*time.Second), before.scrape(t))
	for i, requests := range []int{2, 8} {
		after := newExporter()
		for range requests {
			after.record("llama", "success", 0.2, 0.02)
		}
		w.Add(begin.Add(time.Duration(i+2)*2*time.Second), after.scrape(t))
	}
	rows, _ := w.Rows()
	require.EqualValues(t, 3+2+8, rows[0].Latencies[0].Count())
}

func TestWindow_IsBounded(t *testing.T) {
	e := newExporter()
	w := &Window{Length: time.Hour}
	for i := range 2000 { // more than an hour
		w.Add(begin.Add(time.Duration(i)*2*time.Second), e.scrape(t))
		require.LessOrEqual(t, len(w.slots), slots+2)
	}
}

func TestWrite_FormatsTable(t *testing.T) {
	llama := Row{Model: "llama-70b", Service: "chat", Vantage: "server", Requests: map[string]float64{"success": 116, "cancelled": 3, "error": 2}}
	llama.Latencies[0].Add(0.3124, 116)
	llama.Latencies[1].Add(0.0215, 9000)
	llama.Latencies[2].Add(1.1, 115)
	require.Equal(t, ""+
		"MODEL         SERVICE  VANTAGE  REQUESTS                    TTFT p50  p95    p99    n    ITL p50  p95     p99     n     TPOT p50  p95   p99   n\n"+
		"(all others)  -        -        7                           -         -      -      0    -        -       -       0     -         -     -     0\n"+
		"llama-70b     chat     server   121 (2 error, 3 cancelled)  312ms     312ms  312ms  116  21.5ms   21.5ms  21.5ms  9000  1.1s      1.1s  1.1s  115\n",
		table(t, []Row{{Model: "(all others)", Requests: map[string]float64{"success": 7}}, llama}))
}

func TestWrite_WithoutRequests(t *testing.T) {
	require.Equal(t, "waiting for the first request\n", table(t, Totals{}.Rows()))
}

func TestScrape_RejectsOtherPages(t *testing.T) {
	text := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer text.Close()
	_, err := Scrape(t.Context(), text.Client(), text.URL)
	require.ErrorContains(t, err, "check that --metrics is a token_sli exporter")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err = Scrape(t.Context(), server.Client(), server.URL)
	require.ErrorContains(t, err, "answered 404 Not Found")
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
		_, _ = w.Write([]byte{200, 1})
	}))
	defer cut.Close()
	_, err = Scrape(t.Context(), cut.Client(), cut.URL)
	require.ErrorContains(t, err, "not Prometheus metrics")
}
