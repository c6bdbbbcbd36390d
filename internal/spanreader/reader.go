// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// reader reads spans one after the other into the same request.
type reader struct {
	request series.Contribution
	values  []string // of the attributes that distinguish the request's series
	*Options
	findings
}

// findings are what the reader finds on one span, besides the numbers of the request.
type findings struct {
	ours       bool // the span has a latency or an outcome of the token_latency processor
	processed  bool // it has more than an outcome and phases, which receivers write, too
	rolledUp   bool // it is the root span of a trace and has a number of the trace
	judged     [slo.Verdicts]optional.Value[pcommon.Value]
	ofTrace    optional.Value[pcommon.Value] // the judged SLOs that judge the trace
	repeated   bool                          // another span of the same request counts
	aggregated bool                          // another component has the request in its series
}

var fieldsByName = names.NewLookup(fields)

// read fills the request. It returns false if the span is neither a model call nor the root
// span of a trace with numbers of its own.
func (r *reader) read(span ptrace.Span, resource []string, now time.Time) bool {
	r.request.Reset(now)
	r.findings = findings{}
	copy(r.values, resource)
	r.request.TraceID, r.request.SpanID, r.request.Trace = span.TraceID(), span.SpanID(), span.TraceID()
	for key, v := range span.Attributes().All() {
		r.Dimensions.Read(r.values, key, v)
		if read := fieldsByName.Get(key); read != nil {
			(*read)(r, v)
		}
	}
	r.decide()
	if !r.ours && !r.rolledUp {
		return false
	}
	r.Dimensions.Clean(&r.request)
	r.verdicts()
	r.request.Failed, r.request.Seconds = span.Status().Code() == ptrace.StatusCodeError, seconds(span)
	if outcome := r.request.Latency.Outcome; r.request.Failed || outcome == names.OutcomeError || outcome == names.OutcomeIncomplete {
		r.request.Status = attributes.Status(span.Attributes())
	}
	r.request.Complete()
	r.Dimensions.SetBands(&r.request)
	return true
}

// seconds returns the duration of a span, or 0 if it ends before it starts.
func seconds(span ptrace.Span) float64 {
	if start, end := span.StartTimestamp(), span.EndTimestamp(); end > start {
		return float64(end-start) / 1e9
	}
	return 0
}

// decide finds out whether the span is a request. Verdicts alone make it one, unless they
// can be those on a trace.
func (r *reader) decide() {
	r.rolledUp = r.rolledUp || r.ofTrace.Known
	if !r.rolledUp {
		for _, list := range r.judged {
			r.ours, r.processed = r.ours || list.Known, r.processed || list.Known
		}
	}
	r.ours = r.ours && !r.repeated
	r.request.TraceOnly = !r.ours
	if r.repeated && r.rolledUp {
		r.request.KeepTrace()
	}
}

// number reads a number. One with a histogram makes the span a request, unless it is a number of the
// trace.
func (r *reader) number(id numbers.ID, v pcommon.Value) {
	switch {
	case id.OfTrace():
		r.rolledUp = true
	case id < numbers.Singles:
		r.ours, r.processed = true, r.processed || !ofReceivers(id)
	}
	if n, ok := attributes.Number(v); ok {
		r.request.SetValue(id, n)
	} else {
		r.request.Reject(series.WrongType)
	}
}

// ofReceivers reports whether token_stream and token_tap write a number, too, for a processor to read.
func ofReceivers(id numbers.ID) bool {
	switch id {
	case numbers.QueueDuration, numbers.PrefillDuration, numbers.DecodeDuration, numbers.NetworkDuration:
		return true
	}
	return false
}

// largestSketch exceeds the size of every valid sketch, in bytes. Larger values are
// rejected without being copied.
const largestSketch = 64 << 10

// sketch reads a distribution.
func (r *reader) sketch(id numbers.ID, v pcommon.Value) {
	r.ours, r.processed = true, true
	encoded := []byte{}
	switch {
	case v.Type() != pcommon.ValueTypeBytes:
		r.request.Reject(series.WrongType)
	case v.Bytes().Len() == 0 || v.Bytes().Len() > largestSketch:
		r.request.Reject(series.MalformedSketch)
	default:
		encoded = v.Bytes().AsRaw()
	}
	r.request.Distribution(id).Sketch = encoded
}

// verdicts reads the lists of SLOs with a verdict.
func (r *reader) verdicts() {
	for verdict, list := range r.judged {
		if list.Known {
			r.verdictsIn(list.Value, slo.Verdict(verdict))
		}
	}
}

// verdictsIn reads the list of SLOs with one verdict.
func (r *reader) verdictsIn(v pcommon.Value, verdict slo.Verdict) {
	if v.Type() != pcommon.ValueTypeSlice {
		r.request.Reject(series.WrongType)
		return
	}
	list, wrong := v.Slice(), false
	for i, entry := range list.All() {
		name := names.CleanLabel(entry.Str()) // empty for other types
		switch {
		case i >= slo.MaxSLOs && !r.request.Verdicts.Objectives[name]:
			r.request.Verdicts.Drop(1)
		case name == "":
			wrong = true
		case r.judgesTrace(entry.Str()):
			r.request.Verdicts.AddOfTrace(name, verdict)
		default:
			r.request.Verdicts.Add(name, verdict)
		}
	}
	if wrong {
		r.request.Reject(series.WrongType)
	}
}

// judgesTrace reports whether an SLO judges the trace instead of the request. It searches
// the first slo.MaxSLOs entries of the list, so that a long list costs no more.
func (r *reader) judgesTrace(name string) bool {
	if r.request.TraceOnly {
		return true
	}
	if !r.ofTrace.Known || r.ofTrace.Value.Type() != pcommon.ValueTypeSlice {
		return false
	}
	list := r.ofTrace.Value.Slice()
	for i := range min(list.Len(), slo.MaxSLOs) {
		if list.At(i).Str() == name {
			return true
		}
	}
	return false
}

func (r *reader) outcome(v pcommon.Value) {
	r.ours = true
	if outcome := scalar(v); slices.Contains(series.OutcomeNames[:], outcome) {
		r.request.Latency.Outcome = outcome
	} else {
		r.request.Reject(series.UnknownOutcome)
	}
}
