// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// annotatedSpan is a request whose numbers are attributes of its span, whether this component or
// another token_latency wrote them.
type annotatedSpan struct {
	attributes, resource pcommon.Map
	outcome              string
}

func (s *annotatedSpan) Outcome() string { return s.outcome }
func (s *annotatedSpan) Cut() bool {
	return attributes.Text(s.attributes, names.Cut) == names.CutCollector
}

func (s *annotatedSpan) Mistaken() bool {
	return s.outcome == names.OutcomeError && slo.IsClientMistake(s.outcome, attributes.Status(s.attributes))
}

func (s *annotatedSpan) Number(id numbers.ID) latency.Measure {
	return attributes.Measured(s.attributes, id.Attribute())
}

func (s *annotatedSpan) Attribute(name string) (v pcommon.Value, ok bool) {
	return attributes.LookUp(name, s.attributes, s.resource)
}

// JudgeSpan writes the verdict of every SLO that applies on a span that is a model call or the root that
// a trace was rolled up on.
func (r *Rules) JudgeSpan(span ptrace.Span, resource pcommon.Map) {
	own := span.Attributes()
	call, rolledUp := attributes.IsAnnotated(span) && !attributes.IsRepeated(span), attributes.IsRolledUp(span)
	if !call && !rolledUp {
		removeAllVerdicts(own)
		return
	}
	removeVerdicts(own, r.defined)
	request := &annotatedSpan{own, resource, attributes.Text(own, names.Outcome)}
	var room [8]Verdict // avoids an allocation
	if call {
		for _, v := range r.Judge(room[:0], request) {
			r.putVerdict(own, v)
		}
	}
	if rolledUp {
		if !call { // the status says how the root span ended
			request.outcome = names.OutcomeSuccess
			if span.Status().Code() == ptrace.StatusCodeError {
				request.outcome = names.OutcomeError
			}
		}
		for _, v := range r.judgeTrace(room[:0], request) {
			r.putVerdict(own, v)
			attributes.List(own, names.SLOOfTrace).AppendEmpty().SetStr(v.SLO)
		}
	}
}
