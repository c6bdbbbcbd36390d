// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
)

// sinks is what the consumers of the connector have.
type sinks struct {
	refuse   bool
	requests map[string]float64  // as requestsMetric names them
	events   map[requestKey]int  // breach events
	owed     map[requestKey]bool // breaches that were presented while the consumer accepted
}

var errSink = errors.New("the consumer of the connector refuses")

// flushed notes the metrics of the connector.
func (w *world) flushed(metrics pmetric.Metrics) {
	defer w.gathered(metrics)
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if metric.Name() == "tokenpulse.requests" {
					w.addRequests(metric.Sum().DataPoints())
				}
			}
		}
	}
}

func (w *world) addRequests(points pmetric.NumberDataPointSlice) {
	for _, p := range points.All() {
		k := seriesKey{
			service: attribute(p.Attributes(), names.ServiceName),
			model:   attribute(p.Attributes(), names.GenAIRequestModel),
			vantage: attribute(p.Attributes(), "vantage"),
		}
		name := k.metric(requestsMetric, "outcome="+attribute(p.Attributes(), "outcome"))
		value := p.DoubleValue() + float64(p.IntValue())
		if w.temporality == publish.Delta {
			value += w.sinks.requests[name]
		}
		w.sinks.requests[name] = value
	}
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

// checkSinks compares what the consumers of the connector have with the model. drained is set
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
	for k, s := range w.exporter.series {
		for _, outcome := range []string{"success", "error", "cancelled", "incomplete"} {
			name := k.metric(requestsMetric, "outcome="+outcome)
			want[name] = s.values[name]
		}
	}
	for name, v := range w.sinks.requests {
		if v > want[name] {
			w.failf("the connector sent %v for %s, want at most %v", v, name, want[name])
		}
	}
	for name, v := range want {
		if got := w.sinks.requests[name]; drained && got != v {
			w.failf("the connector sent %v for %s, want %v", got, name, v)
		}
	}
}

// remembersAll reports whether deduplication forgets nothing in this run.
func (w *world) remembersAll() bool { return w.maxSpans > 100 }
