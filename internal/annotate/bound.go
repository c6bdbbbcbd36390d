// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Bound are the rules for requests that have some attributes in common. They judge a request without
// its span, with the verdict that its annotated span gets. They are safe for concurrent use.
type Bound struct {
	rules  []boundRule
	missed []*use
}

// boundRule is a rule that applies to the requests, as far as their common attributes are concerned.
type boundRule struct {
	*rule
	threshold float64   // of the request, unless openThreshold
	open      []matcher // conditions on attributes that differ from request to request
	// openThreshold means that the threshold's attribute differs from request to request.
	openThreshold bool
}

// Bind finds the rules that can apply to requests with the given attributes on span and resource:
// those that each of the requests has with the same value, those under `tokenpulse.` included.
// Attributes that Annotate writes and that are missing here differ from request to request.
func (r *Rules) Bind(attributes, resource pcommon.Map) *Bound {
	bound := &Bound{}
	for i := range r.all {
		if rule, applies := r.all[i].bind(attributes, resource); applies {
			bound.rules = append(bound.rules, rule)
		} else {
			bound.missed = append(bound.missed, r.all[i].use)
		}
	}
	return bound
}

func (r *rule) bind(attributes, resource pcommon.Map) (bound boundRule, applies bool) {
	if r.ofTrace() {
		return boundRule{}, false
	}
	differs := func(name string) bool {
		_, common := attributes.Get(name)
		return !common && IsOfRequest(name)
	}
	bound.rule = r
	for _, m := range r.matchers {
		if differs(m.attribute) {
			bound.open = append(bound.open, m)
		} else if !m.applies(attributes, resource) {
			return boundRule{}, false
		}
	}
	if bound.openThreshold = differs(r.thresholdAttribute); !bound.openThreshold {
		bound.threshold = r.thresholdOf(attributes, resource)
	}
	return bound, true
}

// IsOfRequest reports whether an attribute of a stream's span may be written, or depends on the end of
// the stream.
func IsOfRequest(name string) bool {
	switch name {
	case names.GenAIInputTokens, names.GenAIOutputTokens, names.GenAIReasoningTokens, names.GenAICacheReadInputTokens,
		names.GenAIFinishReasons:
		return true
	default:
		return strings.HasPrefix(name, names.Prefix)
	}
}

// Any reports whether any rule can apply.
func (b *Bound) Any() bool { return len(b.rules) > 0 }

// Request is a request to judge without its span.
type Request struct {
	Derived *latency.Latency
	// Cut means that the Collector itself ended the stream, so that no SLO is eligible.
	Cut bool
	// Attributes returns the attributes of the annotated span, and those of its resource. It is called
	// only for an SLO with a condition, or a threshold, that depends on attributes of the request other
	// than its outcome.
	Attributes func() (span, resource pcommon.Map)
}

// Verdict is the verdict of one SLO on a request.
type Verdict struct {
	SLO       string
	Verdict   slo.Verdict
	Indicator string  // without the prefix "tokenpulse."
	Threshold float64 // 0 for the outcome, which has none
}

// Judge appends the verdict of each rule that applies to the request, and counts the request for
// Unapplied.
func (b *Bound) Judge(verdicts []Verdict, request *Request) []Verdict {
	for _, missed := range b.missed {
		missed.miss()
	}
	for i := range b.rules {
		rule := &b.rules[i]
		if rule.appliesTo(request) {
			rule.use.apply()
			verdicts = append(verdicts, rule.judge(request))
		} else {
			rule.use.miss()
		}
	}
	return verdicts
}

// Breaches reports whether the request breaches an SLO. It does not count the request.
func (b *Bound) Breaches(request *Request) bool {
	for i := range b.rules {
		if r := &b.rules[i]; r.appliesTo(request) && r.judge(request).Verdict == slo.Bad {
			return true
		}
	}
	return false
}

// judge returns the verdict on a request that the rule applies to.
func (r *boundRule) judge(request *Request) Verdict {
	threshold, verdict := r.threshold, slo.NotEligible
	if r.openThreshold {
		threshold = r.thresholdOf(request.Attributes())
	}
	if !request.Cut {
		verdict = r.rule.judge(request.Derived.Outcome, r.indicator.in(request.Derived), threshold, request.Derived.ChunkCount.Value > 1)
	}
	return Verdict{r.name, verdict, strings.TrimPrefix(r.attribute, names.Prefix), threshold}
}

// appliesTo reports whether the request matches the open conditions.
func (r *boundRule) appliesTo(request *Request) bool {
	for i := range r.open {
		m := &r.open[i]
		if m.attribute == names.Outcome {
			if !m.matches(request.Derived.Outcome) {
				return false
			}
		} else if !m.applies(request.Attributes()) {
			return false
		}
	}
	return true
}
