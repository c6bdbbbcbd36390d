// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// reader reads spans one after the other into the same request.
type reader struct {
	dimensions Dimensions
	objectives slo.Names
	request    series.Request

	// The fields below are reset for each span.

	ours                 bool // the span has a latency or an outcome of the token_latency processor
	rolledUp             bool // it is the root span of a trace and has a number of the trace
	judged               [slo.Verdicts]optional.Value[pcommon.Value]
	ofTrace              optional.Value[pcommon.Value] // the judged SLOs that judge the trace
	outcomeKnown         bool
	stalledAtEnd, cut    bool
	aggregated           bool // another component has the request in its series
	tokenCount           float64
	chunkCount           float64
	clockAnomalies       float64
	tokenGaps, chunkGaps series.Distribution
	ownChunkGaps         bool // the span has a sketch of its chunk gaps
	chunkGapsLikeTokens  bool // without such a sketch, its chunk gaps equal its token gaps
	absent               [len(indicators)]optional.Value[int]
	sketches             int // number of sketches that the span has
	rejected             [Reasons]int64
}

// read fills the request. It returns false if the span is neither a model call nor the root
// span of a trace with numbers of its own.
func (r *reader) read(span ptrace.Span, resource []string, now time.Time) bool {
	values, verdicts := r.request.Dimensions, r.request.Verdicts
	copy(values, resource)
	verdicts.Reset()
	*r = reader{dimensions: r.dimensions, objectives: r.objectives, request: series.Request{
		Dimensions: values,
		Arrival:    now,
		TraceID:    span.TraceID(),
		SpanID:     span.SpanID(),
		Verdicts:   verdicts,
	}}
	for key, v := range span.Attributes().All() {
		r.dimensions.Read(values, key, v)
		if f := fieldOf(key); f != nil {
			f.read(r, v)
		}
	}
	r.decide()
	if !r.ours && !r.rolledUp {
		return false
	}
	r.verdicts()
	r.deriveOutcome(span)
	r.request.Verdicts.End(r.ending())
	r.deriveOutputTokens()
	r.deriveOutputTokenRate()
	r.deriveStalls()
	r.countUnmeasured()
	r.distribute()
	r.limitGaps(span)
	return true
}

// decide finds out whether the span is a request. Verdicts alone make it one, unless they
// can be those on a trace.
func (r *reader) decide() {
	r.rolledUp = r.rolledUp || r.ofTrace.Known
	if !r.rolledUp {
		for _, list := range r.judged {
			r.ours = r.ours || list.Known
		}
	}
	r.request.TraceOnly = !r.ours
}

// timeToAnswer reads a number of the trace, which does not make the span a request.
func (r *reader) timeToAnswer(v pcommon.Value) {
	r.rolledUp = true
	if n, ok := r.accept(number(v)); ok {
		r.request.SetValue(series.TimeToAnswer, n)
	}
}

// accept counts a rejected value.
func (r *reader) accept(n float64, reason Reason) (float64, bool) {
	if reason != accepted {
		r.rejected[reason]++
	}
	return n, reason == accepted
}

// value returns a function that reads a quantity.
func value(q series.Quantity) func(*reader, pcommon.Value) {
	return func(r *reader, v pcommon.Value) {
		r.ours = true
		if n, ok := r.accept(number(v)); ok {
			r.request.SetValue(q, n)
		}
	}
}

func (r *reader) number(into *float64, v pcommon.Value) {
	if n, ok := r.accept(number(v)); ok {
		*into = n
	}
}

func (r *reader) wholeNumber(into *float64, v pcommon.Value) {
	if n, ok := r.accept(wholeNumber(v)); ok {
		*into = n
	}
}

// count returns a function that reads what the request adds to a sum.
func count(c series.Count, parse func(pcommon.Value) (float64, Reason)) func(*reader, pcommon.Value) {
	return func(r *reader, v pcommon.Value) {
		if n, ok := r.accept(parse(v)); ok {
			r.request.SetCount(c, n)
		}
	}
}

func (r *reader) chunkSketch(v pcommon.Value) {
	r.ownChunkGaps = true
	r.sketch(&r.chunkGaps, v)
}

func (r *reader) sketch(into *series.Distribution, v pcommon.Value) {
	r.ours = true
	encoded, reason := encodedSketch(v)
	if reason != accepted {
		r.rejected[reason]++
		return
	}
	into.Sketch = encoded
	r.sketches++
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
		r.rejected[WrongType]++
		return
	}
	list, wrong := v.Slice(), false
	for i, entry := range list.All() {
		name := series.CleanLabel(entry.Str()) // empty for other types
		reserved := r.objectives[name]
		switch {
		case i >= slo.MaxSLOs && !reserved:
			r.request.Verdicts.Drop(1)
		case name == "":
			wrong = true
		case r.judgesTrace(entry.Str()):
			r.request.Verdicts.AddOfTrace(name, verdict, reserved)
		case reserved:
			r.request.Verdicts.AddReserved(name, verdict)
		default:
			r.request.Verdicts.Add(name, verdict)
		}
	}
	if wrong {
		r.rejected[WrongType]++
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
	outcome := slices.Index(series.OutcomeNames[:], scalar(v))
	if outcome < 0 {
		r.rejected[UnknownOutcome]++
		return
	}
	r.request.Outcome = series.Outcome(outcome)
	r.outcomeKnown = true
}

// deriveOutcome falls back to the span's status.
func (r *reader) deriveOutcome(span ptrace.Span) {
	if !r.outcomeKnown && span.Status().Code() == ptrace.StatusCodeError {
		r.request.Outcome = series.Error
	}
}

// ending returns how the request ended. A forged stall counts only on a cancelled request.
func (r *reader) ending() slo.Ending {
	switch outcome := r.request.Outcome; {
	case r.cut:
		return slo.Cut
	case outcome == series.Error, outcome == series.Incomplete, outcome == series.Cancelled && r.stalledAtEnd:
		return slo.Failed
	default:
		return slo.Finished
	}
}

// deriveOutputTokens falls back to the counted tokens if the service reported no usage.
func (r *reader) deriveOutputTokens() {
	if _, reported := r.request.Count(series.OutputTokens); !reported && r.tokenCount > 0 {
		r.request.SetCount(series.OutputTokens, r.tokenCount)
	}
}

// deriveOutputTokenRate falls back to the definition of the rate. The processor writes the
// rate with `detail: full` only.
func (r *reader) deriveOutputTokenRate() {
	perToken, _ := r.request.Value(series.TimePerOutputToken)
	if _, written := r.request.Value(series.OutputTokenRate); !written && perToken*largest >= 1 {
		r.request.SetValue(series.OutputTokenRate, 1/perToken)
	}
}

// deriveStalls adds zero stalls, which the processor does not write, so that the counters
// of a series start with its first stream.
func (r *reader) deriveStalls() {
	if _, stalled := r.request.Count(series.Stalls); !stalled && r.chunkCount > 1 {
		r.request.SetCount(series.Stalls, 0)
		r.request.SetCount(series.StallSeconds, 0)
	}
}

// longestChunkGap reads the only statistic of chunk gaps that is used. Spans have it with
// `detail: full`. The processor then also writes their sketch where it differs from that of
// the token gaps: where a chunk after the first held several tokens.
func (r *reader) longestChunkGap(v pcommon.Value) {
	r.chunkGapsLikeTokens = true
	r.number(&r.chunkGaps.Max, v)
}

// distribute sets the distributions.
func (r *reader) distribute() {
	if !r.ownChunkGaps && r.chunkGapsLikeTokens {
		r.chunkGaps.Sketch = r.tokenGaps.Sketch
		r.chunkGaps.Max = max(r.chunkGaps.Max, r.tokenGaps.Max)
	}
	r.request.SetDistribution(series.InterTokenLatency, r.tokenGaps)
	r.request.SetDistribution(series.InterChunkLatency, r.chunkGaps)
}

// Limits of a request's gaps. The processor rounds gaps to microseconds, and a bucket is
// 1.1% wide.
const (
	gapTolerance = 1.011
	gapRounding  = 10e-6
	// maxGaps limits the gaps of a request without a token count: 16 million tokens.
	maxGaps = 1 << 24
	// maxSpread limits the sum of the gaps in seconds, whatever the span says: the events
	// of a stream lie within 24 hours of its start, before or after.
	maxSpread = 48 * 3600
)

// limitGaps sets what the gaps of the request cannot exceed, so that one forged span does
// not outweigh all others. All gaps lie between the span's start and end, unless the
// processor found clock anomalies: chunks outside the span, or backward steps, after
// which the same time begins again. Each single gap still fits into the span.
func (r *reader) limitGaps(span ptrace.Span) {
	seconds := 0.0
	if start, end := span.StartTimestamp(), span.EndTimestamp(); end > start {
		seconds = float64(end-start) / 1e9
	}
	longest := min(seconds, maxSpread)*gapTolerance + gapRounding
	r.request.Gaps = series.GapLimits{Longest: longest, Sum: longest, Count: maxGaps}
	if r.clockAnomalies > 0 {
		r.request.Gaps.Sum = maxSpread * gapTolerance
	}
	if r.tokenCount > 0 {
		r.request.Gaps.Count = min(maxGaps, uint64(r.tokenCount))
	}
}
