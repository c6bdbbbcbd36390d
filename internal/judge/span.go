// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// annotatedSpan is a request whose numbers are attributes of its span, whether this component or
// another token_latency wrote them. read fills it.
type annotatedSpan struct {
	attributes, resource    pcommon.Map
	outcome                 string
	cut, repeated, rolledUp bool
	interrupted             bool
	judged                  bool // whether it has verdicts of an earlier processor
}

// read reads all that does not depend on the rules in one pass, since each Get searches the attributes.
func (s *annotatedSpan) read() {
	for name, v := range s.attributes.All() {
		if !strings.HasPrefix(name, names.Prefix) {
			continue
		}
		switch name {
		case names.Outcome:
			s.outcome = v.Str()
		case names.Cut:
			s.cut = v.Str() == names.CutCollector
		case names.Interrupted:
			s.interrupted = v.Bool()
		case names.Repeated:
			s.repeated = true
		case names.TraceCalls:
			s.rolledUp = true
		default:
			s.judged = s.judged || strings.HasPrefix(name, names.SLOPrefix)
		}
	}
}

func (s *annotatedSpan) Outcome() string { return s.outcome }
func (s *annotatedSpan) Cut() bool       { return s.cut }

func (s *annotatedSpan) Interrupted() bool { return s.interrupted }

func (s *annotatedSpan) Mistaken() bool {
	return s.outcome == names.OutcomeError && slo.IsClientMistake(s.outcome, attributes.Status(s.attributes))
}

func (s *annotatedSpan) Number(id numbers.ID) latency.Measure {
	value, known := attributes.Plausible(s.attributes, id.Attribute())
	return latency.Measure{Value: value, Known: known}
}

func (s *annotatedSpan) Attribute(name string) (v pcommon.Value, ok bool) {
	return attributes.LookUp(name, s.attributes, s.resource)
}

// SpanJudge judges spans. It is not safe for concurrent use.
type SpanJudge struct {
	rules    *Rules
	request  annotatedSpan // the current span
	verdicts []Verdict     // memory for those of one span

	// Slow and Timed are what Slow returns for the last span, if it is a model call.
	Slow, Timed bool
}

// NewSpanJudge returns a judge by these rules.
func NewSpanJudge(rules *Rules) *SpanJudge { return &SpanJudge{rules: rules} }

// Judge writes the verdict of every SLO that applies on a span that is a model call or the root that a
// trace was rolled up on. It returns the number of attributes that it added.
func (j *SpanJudge) Judge(span ptrace.Span, resource pcommon.Map) (added int) {
	own, request := span.Attributes(), &j.request
	*request = annotatedSpan{attributes: own, resource: resource}
	request.read()
	call := !request.repeated && attributes.IsAnnotated(span)
	j.Slow, j.Timed = false, false
	switch {
	case !request.judged:
	case call || request.rolledUp:
		removeVerdicts(own, j.rules.defined)
	default:
		removeAllVerdicts(own)
	}
	before := own.Len()
	if call {
		j.verdicts = j.rules.Judge(j.verdicts[:0], request)
		j.Slow, j.Timed = Slow(j.verdicts, request.outcome)
		putVerdicts(own, j.verdicts, j.rules.detailed)
	}
	if request.rolledUp {
		if !call { // the status says how the root span ended
			request.outcome = names.OutcomeSuccess
			if span.Status().Code() == ptrace.StatusCodeError {
				request.outcome = names.OutcomeError
			}
		}
		j.verdicts = j.rules.judgeTrace(j.verdicts[:0], request)
		putVerdicts(own, j.verdicts, j.rules.detailed)
		for i := range j.verdicts {
			attributes.List(own, names.SLOOfTrace).AppendEmpty().SetStr(j.verdicts[i].SLO)
		}
	}
	j.request = annotatedSpan{} // releases the span
	return own.Len() - before
}
