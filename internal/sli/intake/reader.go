package intake

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sli"
)

// reader turns one span after the other into a request.
type reader struct {
	dimensions   []string
	verdictsOnly bool
	request      sli.Request

	// What is known of the span so far.
	ours                 bool // it carries something of the token_latency processor
	outcomeKnown         bool
	tokenCount           float64
	tokenGaps, chunkGaps sli.Distribution
	ownChunkGaps         bool // the span has a sketch of them
	sketches             int  // how many the span has
	rejected             [Reasons]int64
}

// read fills in the request and tells whether the span is one.
func (r *reader) read(span ptrace.Span, resource []string, now time.Time) bool {
	values, verdicts := r.request.Dimensions, r.request.Verdicts
	copy(values, resource)
	verdicts.Reset()
	*r = reader{dimensions: r.dimensions, verdictsOnly: r.verdictsOnly, request: sli.Request{
		Dimensions: values,
		Arrival:    now,
		TraceID:    span.TraceID(),
		SpanID:     span.SpanID(),
		Verdicts:   verdicts,
	}}
	for key, v := range span.Attributes().All() {
		readDimension(values, r.dimensions, key, v)
		if !r.judgement(key, v) && !r.verdictsOnly {
			r.measurement(key, v)
		}
	}
	if !r.ours {
		return false
	}
	r.deriveOutcome(span)
	r.deriveOutputTokens()
	r.distribute()
	return true
}

// judgement takes an attribute that tells what kind of request it was, and what the
// objectives say of it. It returns whether it is one.
func (r *reader) judgement(key string, v pcommon.Value) bool {
	switch key {
	case names.Outcome:
		r.outcome(v)
	case names.Vantage:
		r.request.Vantage = scalar(v)
	case names.SLOMet:
		r.verdicts(sli.Good, v)
	case names.SLOBreached:
		r.verdicts(sli.Bad, v)
	case names.SLONotEligible:
		r.verdicts(sli.NotEligible, v)
	default:
		return false
	}
	return true
}

// measurement takes an attribute that holds a number, or a distribution.
func (r *reader) measurement(key string, v pcommon.Value) {
	switch key {
	case names.TimeToFirstToken:
		r.value(sli.TimeToFirstToken, v)
	case names.TimeToFirstOutputToken:
		r.value(sli.TimeToFirstOutputToken, v)
	case names.TimePerOutputToken:
		r.value(sli.TimePerOutputToken, v)
	case names.RequestDuration:
		r.value(sli.RequestDuration, v)
	case names.QueueDuration:
		r.value(sli.QueueDuration, v)
	case names.PrefillDuration:
		r.value(sli.PrefillDuration, v)
	case names.DecodeDuration:
		r.value(sli.DecodeDuration, v)
	case names.OutputTokenRate:
		r.value(sli.OutputTokenRate, v)

	case names.InterTokenLatencySketch:
		r.sketch(&r.tokenGaps, v)
	case names.InterChunkLatencySketch:
		r.ownChunkGaps = true
		r.sketch(&r.chunkGaps, v)
	case names.InterTokenLatency + names.SuffixMax:
		r.number(&r.tokenGaps.Max, v)
	case names.InterChunkLatency + names.SuffixMax:
		r.number(&r.chunkGaps.Max, v)
	case names.TokenCount:
		r.number(&r.tokenCount, v)

	case names.GenAIInputTokens:
		r.count(sli.InputTokens, v)
	case names.GenAIOutputTokens:
		r.count(sli.OutputTokens, v)
	case names.GenAIReasoningTokens:
		r.count(sli.ReasoningTokens, v)
	case names.GenAICacheReadInputTokens:
		r.count(sli.CachedInputTokens, v)
	case names.StallCount:
		r.count(sli.Stalls, v)
	case names.StallDuration:
		if n, ok := r.accept(number(v)); ok {
			r.request.SetCount(sli.StallSeconds, n)
		}
	}
}

// accept counts a value that is turned away.
func (r *reader) accept(n float64, reason Reason) (float64, bool) {
	if reason != accepted {
		r.rejected[reason]++
	}
	return n, reason == accepted
}

func (r *reader) value(q sli.Quantity, v pcommon.Value) {
	r.ours = true
	if n, ok := r.accept(number(v)); ok {
		r.request.SetValue(q, n)
	}
}

func (r *reader) number(into *float64, v pcommon.Value) {
	if n, ok := r.accept(number(v)); ok {
		*into = n
	}
}

func (r *reader) count(c sli.Count, v pcommon.Value) {
	if n, ok := r.accept(wholeNumber(v)); ok {
		r.request.SetCount(c, n)
	}
}

func (r *reader) sketch(into *sli.Distribution, v pcommon.Value) {
	r.ours = true
	encoded, reason := encodedSketch(v)
	if reason != accepted {
		r.rejected[reason]++
		return
	}
	into.Sketch = encoded
	r.sketches++
}

// verdicts takes a list of objectives that have one verdict in common.
func (r *reader) verdicts(verdict sli.Verdict, v pcommon.Value) {
	r.ours = true
	if v.Type() != pcommon.ValueTypeSlice {
		r.rejected[WrongType]++
		return
	}
	list, wrong := v.Slice(), false
	for i := range min(list.Len(), sli.MaxSLOs) {
		slo := list.At(i)
		if slo.Type() != pcommon.ValueTypeStr || slo.Str() == "" {
			wrong = true
			continue
		}
		r.request.Verdicts.Add(slo.Str(), verdict)
	}
	if wrong {
		r.rejected[WrongType]++
	}
	r.request.Verdicts.Drop(max(0, list.Len()-sli.MaxSLOs))
}

func (r *reader) outcome(v pcommon.Value) {
	r.ours = true
	outcome := slices.Index(sli.OutcomeNames[:], scalar(v))
	if outcome < 0 {
		r.rejected[UnknownOutcome]++
		return
	}
	r.request.Outcome = sli.Outcome(outcome)
	r.outcomeKnown = true
}

// deriveOutcome falls back on the span's status.
func (r *reader) deriveOutcome(span ptrace.Span) {
	if !r.outcomeKnown && span.Status().Code() == ptrace.StatusCodeError {
		r.request.Outcome = sli.Error
	}
}

// deriveOutputTokens counts the tokens that were seen where the service reported
// none.
func (r *reader) deriveOutputTokens() {
	if _, reported := r.request.Count(sli.OutputTokens); !reported && r.tokenCount > 0 {
		r.request.SetCount(sli.OutputTokens, r.tokenCount)
	}
}

// distribute hands the distributions over. The processor writes that of the
// chunks only where it differs from that of the tokens: where some chunk after
// the first held several.
func (r *reader) distribute() {
	if !r.ownChunkGaps {
		r.chunkGaps.Sketch = r.tokenGaps.Sketch
		r.chunkGaps.Max = max(r.chunkGaps.Max, r.tokenGaps.Max)
	}
	r.request.SetDistribution(sli.InterTokenLatency, r.tokenGaps)
	r.request.SetDistribution(sli.InterChunkLatency, r.chunkGaps)
}
