// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// breaches builds the events of one batch of spans.
type breaches struct {
	dimensions []string // their attributes: an event has the number itself instead of its band
	attributes []string // also copied, from the span or its resource
	objectives slo.Names
	// delivered holds the requests whose event the next consumer has, or is being sent.
	delivered *dedup.Set
	now       time.Time

	claimed []dedup.ID // requests of this batch in delivered
}

// events returns an event for each span that breached an SLO, with the span's resource and
// trace context. Spans whose event was delivered before have none.
func (b *breaches) events(traces ptrace.Traces) plog.Logs {
	logs := plog.NewLogs()
	for _, resourceSpans := range traces.ResourceSpans().All() {
		var into *plog.LogRecordSlice // nil until the resource has an event
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				breached, ok := span.Attributes().Get(names.SLOBreached)
				if !ok || breached.Type() != pcommon.ValueTypeSlice || breached.Slice().Len() == 0 || !b.claim(span) {
					continue
				}
				if into == nil {
					resource := logs.ResourceLogs().AppendEmpty()
					resourceSpans.Resource().CopyTo(resource.Resource())
					resource.SetSchemaUrl(resourceSpans.SchemaUrl())
					records := recordsOf(resource)
					into = &records
				}
				b.event(into.AppendEmpty(), span, resourceSpans.Resource().Attributes(), breached.Slice())
			}
		}
	}
	return logs
}

// claim marks the event of a span as delivered. It returns false if it was before.
func (b *breaches) claim(span ptrace.Span) bool {
	id := dedup.ID{TraceID: span.TraceID(), SpanID: span.SpanID()}
	if vantage, ok := span.Attributes().Get(names.Vantage); ok {
		id.Vantage = vantage.Str()
	}
	if !b.delivered.Add(&id, b.now) {
		return false
	}
	b.claimed = append(b.claimed, id)
	return true
}

// refused marks the events as not delivered: they are sent if the spans come again.
func (b *breaches) refused() {
	for i := range b.claimed {
		b.delivered.Remove(&b.claimed[i])
	}
}

// recordsOf returns the log records of a new scope.
func recordsOf(resource plog.ResourceLogs) plog.LogRecordSlice {
	scope := resource.ScopeLogs().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	return scope.LogRecords()
}

func (b *breaches) event(event plog.LogRecord, span ptrace.Span, resource pcommon.Map, breached pcommon.Slice) {
	event.SetEventName(names.SLOBreachEvent)
	event.SetSeverityNumber(plog.SeverityNumberWarn)
	event.SetSeverityText(plog.SeverityNumberWarn.String())
	event.SetTimestamp(span.EndTimestamp())
	event.SetObservedTimestamp(pcommon.NewTimestampFromTime(b.now))
	event.SetTraceID(span.TraceID())
	event.SetSpanID(span.SpanID())
	event.SetFlags(plog.LogRecordFlags(span.Flags() & 0xff)) // the flags of the trace context

	from, to := span.Attributes(), event.Attributes()
	for _, name := range append([]string{names.Vantage, names.Outcome}, b.dimensions...) {
		copyScalar(to, from, name)
	}
	for _, name := range b.attributes {
		if !copyScalar(to, from, name) {
			copyScalar(to, resource, name)
		}
	}
	slos, maps := to.PutEmptySlice(names.SLOBreached), to.PutEmptySlice(names.SLOBreaches)
	var body []string
	for i, name := range b.listed(breached) {
		entry := breachOf(span.Attributes(), name, i)
		slos.AppendEmpty().SetStr(entry.slo)
		entry.put(maps.AppendEmpty().SetEmptyMap())
		body = append(body, entry.String())
	}
	event.Body().SetStr(strings.Join(body, "; "))
}

// copyScalar copies an attribute as text of at most names.MaxLabelLength bytes. It
// returns false if the attribute is missing, or a list, map or bytes.
func copyScalar(to, from pcommon.Map, name string) bool {
	v, ok := from.Get(name)
	if !ok || v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice || v.Type() == pcommon.ValueTypeBytes {
		return false
	}
	to.PutStr(name, names.CleanLabel(v.AsString()))
	return true
}

// listed yields the index and name of each breached SLO that an event lists: the first
// slo.MaxSLOs, and those with an objective wherever they are, once each.
func (b *breaches) listed(breached pcommon.Slice) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		seen := slo.Names{}
		for i, entry := range breached.All() {
			name := names.CleanLabel(entry.Str()) // empty for other types
			if name == "" || i >= slo.MaxSLOs && (!b.objectives[name] || seen[name]) {
				continue
			}
			if b.objectives[name] {
				seen[name] = true
			}
			if !yield(i, name) {
				return
			}
		}
	}
}

// breach is one SLO that a request breached.
type breach struct {
	slo       string
	indicator string // empty if the span does not carry it
	threshold float64
	limited   bool // threshold is set; the outcome has none
	value     float64
	measured  bool // value is set
}

// breachOf reads entry i of the lists that token_latency wrote. Senders can forge spans:
// only numbers and short names are copied.
func breachOf(own pcommon.Map, name string, i int) (b breach) {
	b.slo = name
	indicator, hasIndicator := entryOf(own, names.SLOBreachedIndicator, i)
	threshold, hasThreshold := entryOf(own, names.SLOBreachedThreshold, i)
	if hasIndicator && hasThreshold && len(indicator.Str()) <= names.MaxLabelLength {
		b.indicator, b.threshold = indicator.Str(), threshold.Double()
		b.limited = threshold.Type() != pcommon.ValueTypeEmpty
	}
	if v, ok := own.Get(names.Prefix + b.indicator); ok && b.indicator != "" {
		b.value, b.measured = attributes.Number(v)
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
	if b.limited {
		into.PutDouble(names.SLOThreshold, b.threshold)
	}
	if b.measured {
		into.PutDouble(names.SLOValue, b.value)
	}
}

// String describes the breach for the body of an event.
func (b *breach) String() string {
	switch {
	case b.indicator == "":
		return b.slo + " breached"
	case !b.limited:
		return fmt.Sprintf("%s breached: bad %s", b.slo, b.indicator)
	case b.measured:
		return fmt.Sprintf("%s breached: %s is %v, over %v", b.slo, b.indicator, b.value, b.threshold)
	default:
		return fmt.Sprintf("%s breached: no %s", b.slo, b.indicator)
	}
}
