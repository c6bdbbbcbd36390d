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
)

// breachEvents returns an event for each span that breached an objective, with the
// span's resource and trace context.
func breachEvents(traces ptrace.Traces, dimensions []string, now time.Time) plog.Logs {
	logs := plog.NewLogs()
	for _, resourceSpans := range traces.ResourceSpans().All() {
		var into *plog.LogRecordSlice // of this resource, if it has any
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
					records := scopeOf(resource)
					into = &records
				}
				breachEvent(into.AppendEmpty(), span, breached.Slice(), dimensions, now)
			}
		}
	}
	return logs
}

// scopeOf returns where the events of a resource go.
func scopeOf(resource plog.ResourceLogs) plog.LogRecordSlice {
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
			to.PutStr(name, short(v.AsString()))
		}
	}
	slos, breaches := to.PutEmptySlice(names.SLOBreached), to.PutEmptySlice(names.SLOBreaches)
	var body []string
	for i := range min(breached.Len(), series.MaxSLOs) {
		b := breachOf(span.Attributes(), breached, i)
		if b.slo == "" {
			continue // no name
		}
		slos.AppendEmpty().SetStr(b.slo)
		b.put(breaches.AppendEmpty().SetEmptyMap())
		body = append(body, b.String())
	}
	event.Body().SetStr(strings.Join(body, "; "))
}

// breach is what a span tells of one objective that it breached.
type breach struct {
	slo       string
	indicator string // empty where the span does not tell
	threshold float64
	value     float64
	measured  bool
}

// breachOf reads one entry of the lists that the token_latency processor wrote. An
// older release wrote no list of indicators and thresholds. Spans come from outside:
// only numbers and short names go any further.
func breachOf(attributes pcommon.Map, breached pcommon.Slice, i int) (b breach) {
	b.slo = short(breached.At(i).Str())
	indicator, told := entryOf(attributes, names.SLOBreachedIndicator, i)
	threshold, toldToo := entryOf(attributes, names.SLOBreachedThreshold, i)
	if told && toldToo && len(indicator.Str()) <= series.MaxLabelLength {
		b.indicator, b.threshold = indicator.Str(), threshold.Double()
	}
	if v, ok := attributes.Get(names.Prefix + b.indicator); ok && b.indicator != "" {
		b.value, b.measured = attribute.Number(v)
	}
	return b
}

// short cuts a name to the length of a label's value.
func short(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), series.MaxLabelLength)], "")
}

// entryOf returns an entry of an attribute that is a list.
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

// String tells of the breach in words.
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
