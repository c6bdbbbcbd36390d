// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// breachEvents returns an event for each span that breached an SLO, with the span's
// resource and trace context.
func breachEvents(traces ptrace.Traces, dimensions []string, now time.Time) plog.Logs {
	logs := plog.NewLogs()
	for _, resourceSpans := range traces.ResourceSpans().All() {
		var into *plog.LogRecordSlice // nil until the resource has an event
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				breached, ok := span.Attributes().Get(names.SLOBreached)
				if !ok || breached.Type() != pcommon.ValueTypeSlice || breached.Slice().Len() == 0 {
					continue
				}
				if into == nil {
					resource := logs.ResourceLogs().AppendEmpty()
					resourceSpans.Resource().CopyTo(resource.Resource())
					resource.SetSchemaUrl(resourceSpans.SchemaUrl())
					records := recordsOf(resource)
					into = &records
				}
				breachEvent(into.AppendEmpty(), span, breached.Slice(), dimensions, now)
			}
		}
	}
	return logs
}

// recordsOf returns the log records of a new scope.
func recordsOf(resource plog.ResourceLogs) plog.LogRecordSlice {
	scope := resource.ScopeLogs().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	return scope.LogRecords()
}

func breachEvent(event plog.LogRecord, span ptrace.Span, breached pcommon.Slice, dimensions []string, now time.Time) {
	event.SetEventName(names.SLOBreachEvent)
	event.SetSeverityNumber(plog.SeverityNumberWarn)
	event.SetSeverityText(plog.SeverityNumberWarn.String())
	event.SetTimestamp(span.EndTimestamp())
	event.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	event.SetTraceID(span.TraceID())
	event.SetSpanID(span.SpanID())
	event.SetFlags(plog.LogRecordFlags(span.Flags() & 0xff)) // the flags of the trace context

	from, to := span.Attributes(), event.Attributes()
	for _, name := range append([]string{names.Vantage, names.Outcome}, dimensions...) {
		if v, ok := from.Get(name); ok && v.Type() != pcommon.ValueTypeMap && v.Type() != pcommon.ValueTypeSlice && v.Type() != pcommon.ValueTypeBytes {
			to.PutStr(name, series.CleanLabel(v.AsString()))
		}
	}
	slos, breaches := to.PutEmptySlice(names.SLOBreached), to.PutEmptySlice(names.SLOBreaches)
	var body []string
	for i := range min(breached.Len(), slo.MaxSLOs) {
		b := breachOf(span.Attributes(), breached, i)
		if b.slo == "" {
			continue // not a name
		}
		slos.AppendEmpty().SetStr(b.slo)
		b.put(breaches.AppendEmpty().SetEmptyMap())
		body = append(body, b.String())
	}
	event.Body().SetStr(strings.Join(body, "; "))
}

// breach is one SLO that a request breached.
type breach struct {
	slo       string
	indicator string // empty if the span does not carry it
	threshold float64
	value     float64
	measured  bool // value is set
}

// breachOf reads entry i of the lists that token_latency wrote. Senders can forge spans:
// only numbers and short names are copied.
func breachOf(attributes pcommon.Map, breached pcommon.Slice, i int) (b breach) {
	b.slo = series.CleanLabel(breached.At(i).Str())
	indicator, hasIndicator := entryOf(attributes, names.SLOBreachedIndicator, i)
	threshold, hasThreshold := entryOf(attributes, names.SLOBreachedThreshold, i)
	if hasIndicator && hasThreshold && len(indicator.Str()) <= series.MaxLabelLength {
		b.indicator, b.threshold = indicator.Str(), threshold.Double()
	}
	if v, ok := attributes.Get(names.Prefix + b.indicator); ok && b.indicator != "" {
		b.value, b.measured = attribute.Number(v)
	}
	return b
}

// entryOf returns entry i of an attribute that is a list.
func entryOf(attributes pcommon.Map, name string, i int) (pcommon.Value, bool) {
	list, ok := attributes.Get(name)
	if !ok || list.Type() != pcommon.ValueTypeSlice || i >= list.Slice().Len() {
		return pcommon.Value{}, false
	}
	return list.Slice().At(i), true
}

func (b *breach) put(into pcommon.Map) {
	into.PutStr(names.SLOName, b.slo)
	if b.indicator == "" {
		return
	}
	into.PutStr(names.SLOIndicator, b.indicator)
	into.PutDouble(names.SLOThreshold, b.threshold)
	if b.measured {
		into.PutDouble(names.SLOValue, b.value)
	}
}

// String describes the breach for the body of an event.
func (b *breach) String() string {
	switch {
	case b.indicator == "":
		return b.slo + " breached"
	case b.measured:
		return fmt.Sprintf("%s breached: %s is %v, over %v", b.slo, b.indicator, b.value, b.threshold)
	default:
		return fmt.Sprintf("%s breached: no %s", b.slo, b.indicator)
	}
}
