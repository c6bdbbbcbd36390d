// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// refusedTimeout is how long expired streams are sent again to a pipeline that refuses them.
const refusedTimeout = 5 * time.Minute

// check compares the components with the model.
func (w *world) check() {
	if w.failure != "" {
		return
	}
	w.checkCounters(false)
	w.checkOverdue()
	w.checkSinks(false)
	// Only spans and time change what a scrape shows, and a scrape takes longer than all else.
	if now := time.Now(); w.path == viaSpans && (w.presented != w.scrapedAt.presented || !now.Equal(w.scrapedAt.time)) {
		w.scrapedAt.presented, w.scrapedAt.time = w.presented, now
		w.checkMetrics()
	}
}

// checkCounters compares the self-metrics. ended is set after the end of the process, which
// has no gauges any more.
func (w *world) checkCounters(ended bool) {
	got := w.selfMetrics()
	w.settleUnseen(got)
	for cause, after := range map[string]time.Duration{"refused": refusedTimeout, "shutdown": -math.MaxInt64} {
		name := "streams_lost " + cause
		if lost := got["receiver_token_stream_"+name] - w.counters[name]; lost > 0 {
			w.drop(lost, cause, after)
		}
	}
	for name, value := range got {
		short, ours := strings.CutPrefix(name, "receiver_token_stream_")
		if !ours || strings.Contains(short, "_open") || strings.Contains(short, "_limit") || strings.HasPrefix(short, "memory") ||
			strings.HasPrefix(short, "duplicates") || strings.HasPrefix(short, "storage") || strings.HasPrefix(short, "identities") {
			continue
		}
		if value != w.counters[short] {
			w.failf("self-metric %s is %d, want %d", name, value, w.counters[short])
		}
	}
	for short, want := range w.counters {
		if value := got["receiver_token_stream_"+short]; value != want {
			w.failf("self-metric %s is %d, want %d", short, value, want)
		}
	}
	units := 0
	for _, c := range w.open {
		units += c.units
	}
	if accepted := got["receiver_token_stream_events_accepted"]; accepted+w.counters["events_restored"] != w.emitted+units {
		w.failf("%d events were accepted, but %d are in finished or lost streams and %d in open ones", accepted, w.emitted, units)
	}
	w.checkRecorded(got)
	if ended {
		return
	}
	w.checkTokenSLI(got)
	if open := got["receiver_token_stream_events_open"]; open != units {
		w.failf("events_open is %d, want %d", open, units)
	}
	memory := got[memoryMetric]
	held, _ := w.held(-1)
	if open := got["receiver_token_stream_streams_open"]; open != held || open > w.maxStreams {
		w.failf("streams_open is %d, want %d, at most %d", open, held, w.maxStreams)
	}
	if live := got["receiver_token_stream_live_requests_open"]; live != len(w.lives) || live > w.maxLive {
		w.failf("live_requests_open is %d, want %d, at most %d", live, len(w.lives), w.maxLive)
	}
	switch {
	case memory > maxMemoryMiB<<20:
		w.failf("memory_held is %d, over the limit", memory)
	case held == 0 && len(w.flights) == 0 && len(w.lives) == 0 && memory != 0:
		w.failf("memory_held is %d without a stream or request", memory)
	case memory < len(w.open)*w.padding():
		w.failf("memory_held is %d, but %d open streams hold %d bytes each", memory, len(w.open), w.padding())
	}
}

func (w *world) padding() int {
	if w.bulky {
		return 16 << 10
	}
	return 100
}

const memoryMetric = "receiver_token_stream_memory_held"

const exporter = " exporter/token_sli scrape"

// owner names the component whose series the model knows, as self-metrics do.
func (w *world) owner() string {
	if w.path == viaSpans {
		return exporter
	}
	return " receiver/token_stream metrics"
}

// checkRecorded checks that each span that token_sli got, or each finished stream, is accounted for.
func (w *world) checkRecorded(got map[string]int) {
	recorded, repeated := got["token_sli_requests"+w.owner()], got["token_sli_requests_duplicate"+w.owner()]
	presented := w.presented
	if w.path != viaSpans {
		presented = 0
		for _, outcome := range []string{"success", "error", "cancelled", "incomplete"} {
			presented += got["receiver_token_stream_streams_finished "+outcome]
		}
		if aggregated := got["token_sli_requests_aggregated"+exporter]; aggregated != w.presented || got["token_sli_requests"+exporter] != 0 {
			w.failf("the exporter took %d of %d spans as counted already, and counted %d", aggregated, w.presented, got["token_sli_requests"+exporter])
		}
	}
	if recorded+repeated != presented {
		w.failf("%d requests were presented, but %d recorded and %d recognised", presented, recorded, repeated)
	}
	if w.remembersAll() && (recorded != w.exporter.requests || repeated != w.exporter.repeated) {
		w.failf("%d requests recorded and %d recognised, want %d and %d", recorded, repeated, w.exporter.requests, w.exporter.repeated)
	}
}

// checkTokenSLI compares the other self-metrics of token_sli.
func (w *world) checkTokenSLI(got map[string]int) {
	for _, name := range []string{"token_sli_values_rejected", "token_sli_spans_ignored", "token_sli_slo_verdicts_dropped"} {
		if n := got[name+exporter] + got[name+w.owner()]; n != 0 {
			w.failf("self-metric %s is %d, want 0", name, n)
		}
	}
	a := w.exporter
	if !w.remembersAll() {
		if forgotten := got["token_sli_deduplication_evicted"+w.owner()]; len(a.recorded)-forgotten > w.maxSpans {
			w.failf("%d requests are remembered, at most %d", len(a.recorded)-forgotten, w.maxSpans)
		}
		return
	}
	if w.path != viaSpans && w.expiration > 0 { // series expire after a flush that is accepted
		return
	}
	if n := got["token_sli_requests_overflow"+w.owner()]; n != a.overflow {
		w.failf("%d requests in the overflow series, want %d", n, a.overflow)
	}
	if n := got["token_sli_conventions_overflow"+w.owner()]; n != a.standardOverflow {
		w.failf("%d requests in the overflow series of conventions, want %d", n, a.standardOverflow)
	}
	if n := got["token_sli_series"+w.owner()]; n > w.maxSeries {
		w.failf("%d series, at most %d", n, w.maxSeries)
	}
}

// selfMetrics returns the self-metrics by name and attributes.
func (w *world) selfMetrics() map[string]int {
	var all metricdata.ResourceMetrics
	if err := w.process.telemetry.Reader.Collect(context.Background(), &all); err != nil {
		w.failf("self-metrics: %v", err)
	}
	got := map[string]int{}
	add := func(name string, points []metricdata.DataPoint[int64]) {
		for _, p := range points {
			key := []string{strings.TrimPrefix(name, "otelcol_")}
			for _, a := range p.Attributes.ToSlice() {
				key = append(key, a.Value.AsString())
			}
			got[strings.Join(key, " ")] += int(p.Value)
		}
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				add(m.Name, data.DataPoints)
			case metricdata.Gauge[int64]:
				add(m.Name, data.DataPoints)
			}
		}
	}
	return got
}

// checkMetrics compares what Prometheus would scrape.
func (w *world) checkMetrics() {
	got, err := w.scrape()
	if err != nil {
		w.failf("scrape: %v", err)
		return
	}
	if !w.remembersAll() { // the model does not know which requests are forgotten
		return
	}
	w.expireSeries(w.exporter)
	want := map[string]float64{}
	for _, s := range w.exporter.series {
		maps.Copy(want, s.values)
	}
	if w.path == viaSpans { // else the receiver has them, and sends them elsewhere
		for _, s := range w.exporter.standard {
			maps.Copy(want, s.values)
		}
	}
	for k, b := range w.exporter.budgets {
		// Budgets of idle series are not shown. With few series, some budgets are evicted.
		// When the receiver saves its budgets is not known.
		if s := w.exporter.series[k]; w.path == viaSpans && s != nil && w.maxSeries > 3 && b.good+b.bad > 0 && (w.expiration == 0 || time.Since(s.lastSeen) <= w.expiration) {
			burned := float64(b.bad) / (float64(b.good+b.bad) * (1 - sloTarget))
			want[k.metric("tokenpulse_slo_error_budget_remaining", "slo=ttft")] = 1 - burned
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[name]; !ok || math.Abs(v-want[name]) > 1e-6*max(1, math.Abs(v)) {
			w.failf("%s is %v, want %v", name, v, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		metric, _, _ := strings.Cut(name, "{")
		if _, ok := want[name]; !ok && compared[metric] && got[name] != 0 {
			w.failf("%s is %v, want none", name, got[name])
		}
	}
}

// compared holds the metrics of which the model knows all time series.
var compared = map[string]bool{
	"tokenpulse_requests_total": true, "tokenpulse_requests_failed_total": true, "tokenpulse_tokens_total": true, "tokenpulse_slo_requests_total": true,
	"tokenpulse_time_to_first_token_seconds_count": true, "tokenpulse_time_to_first_token_seconds_sum": true,
	"tokenpulse_time_per_output_token_seconds_count": true, "tokenpulse_inter_token_latency_seconds_count": true,
	"tokenpulse_request_duration_seconds_count":      true,
	"gen_ai_client_inference_duration_seconds_count": true, "gen_ai_server_request_duration_seconds_count": true,
	"gen_ai_server_time_per_output_token_seconds_count": true,
}

func (w *world) scrape() (map[string]float64, error) {
	request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	request.Header.Set("Accept", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
	response := httptest.NewRecorder()
	w.process.metrics.ServeHTTP(response, request)
	if response.Code != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.Code)
	}
	decoder := expfmt.NewDecoder(bytes.NewReader(response.Body.Bytes()), expfmt.ResponseFormat(response.Header()))
	got := map[string]float64{}
	for {
		var family dto.MetricFamily
		err := decoder.Decode(&family)
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range family.Metric {
			labels := labelsOf(m)
			if h := m.GetHistogram(); h != nil {
				got[family.GetName()+"_count"+labels] += float64(h.GetSampleCount())
				got[family.GetName()+"_sum"+labels] += h.GetSampleSum()
				continue
			}
			got[family.GetName()+labels] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
}

func labelsOf(m *dto.Metric) string {
	var labels []string
	for _, l := range m.Label {
		labels = append(labels, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(labels)
	return "{" + strings.Join(labels, ",") + "}"
}
