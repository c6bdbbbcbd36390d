// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"maps"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
)

// sinks is what the consumers of the series, and of the connector's events, have.
type sinks struct {
	refuse bool
	values map[string]float64  // of the metrics that are compared, named as a scrape does
	events map[requestKey]int  // breach events
	owed   map[requestKey]bool // breaches that were presented while the consumer accepted
}

var errSink = errors.New("the consumer of the series refuses")

// flushed notes the metrics of the connector, or of the receiver.
func (w *world) flushed(metrics pmetric.Metrics) {
	defer w.gathered(metrics)
	w.checkOpen(metrics)
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				w.addMetric(metric)
			}
		}
	}
}

func (w *world) addMetric(metric pmetric.Metric) {
	name := strings.ReplaceAll(metric.Name(), ".", "_")
	switch metric.Type() {
	case pmetric.MetricTypeSum:
		for _, p := range metric.Sum().DataPoints().All() {
			w.addValue(name+"_total", p.Attributes(), p.DoubleValue()+float64(p.IntValue()))
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range metric.ExponentialHistogram().DataPoints().All() {
			w.addValue(name+"_seconds_count", p.Attributes(), float64(p.Count()))
			w.addValue(name+"_seconds_sum", p.Attributes(), p.Sum())
		}
	}
}

func (w *world) addValue(metric string, attributes pcommon.Map, value float64) {
	if !compared[metric] {
		return
	}
	k := seriesKey{
		service: attribute(attributes, names.ServiceName),
		model:   attribute(attributes, names.GenAIRequestModel),
		vantage: attribute(attributes, "vantage"),
	}
	var labels []string
	for _, label := range []string{"outcome", "type", "cause", "slo", "verdict"} {
		if v, ok := attributes.Get(label); ok {
			labels = append(labels, label+"="+v.Str())
		}
	}
	name := k.metric(metric, labels...)
	if w.temporality == publish.Delta {
		value += w.sinks.values[name]
	}
	w.sinks.values[name] = value
}

const requestsMetric = "tokenpulse_requests_total"

// logged notes the events of the connector.
func (w *world) logged(logs plog.Logs) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if record.EventName() == names.SLOBreachEvent {
					w.addEvent(record)
				}
			}
		}
	}
}

func (w *world) addEvent(record plog.LogRecord) {
	k := requestKey{record.TraceID(), record.SpanID(), attribute(record.Attributes(), names.Vantage)}
	w.sinks.events[k]++
	if n := w.sinks.events[k]; n > 1 && w.remembersAll() {
		w.failf("%d events for one breach, of trace %x", n, k.trace)
	}
	if !w.breached[k] {
		w.failf("an event for a request without a breach, of trace %x", k.trace)
	}
}

// checkSinks compares what the consumers of series and events have with the model. drained is set
// after a flush that follows the last request.
func (w *world) checkSinks(drained bool) {
	if !w.remembersAll() {
		return
	}
	for k := range w.sinks.owed {
		if w.sinks.events[k] == 0 {
			w.failf("no event for a breach, of trace %x %s", k.trace, k.vantage)
		}
	}
	if w.expiration > 0 || w.maxSeries <= 3 {
		return
	}
	want := map[string]float64{}
	for _, s := range w.exporter.series {
		maps.Copy(want, s.values)
	}
	for name, v := range w.sinks.values {
		if v > want[name]+tolerance(v) {
			w.failf("the consumer of the series has %v for %s, want at most %v", v, name, want[name])
		}
	}
	for name, v := range want {
		metric, _, _ := strings.Cut(name, "{")
		if got := w.sinks.values[name]; drained && compared[metric] && math.Abs(got-v) > tolerance(v) {
			w.failf("the consumer of the series has %v for %s, want %v", got, name, v)
		}
	}
	if drained && w.path != viaSpans && w.process != nil && w.stopping.IsZero() {
		w.checkMetrics() // the exporter adds the same metrics up
	}
}

// tolerance is for sums, whose additions round in another order.
func tolerance(v float64) float64 { return 1e-6 * max(1, math.Abs(v)) }

// remembersAll reports whether deduplication forgets nothing in this run.
func (w *world) remembersAll() bool { return w.maxSpans > 100 }
