// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Rules are SLOs, ready to judge requests. They are safe for concurrent use.
//
// NewRules returns rules for any request. Bind narrows them to requests that have some attributes in
// common, so that these are compared once.
type Rules struct {
	all      []rule
	defined  map[string]bool        // the names
	missed   []*diagnostics.Lacking // of rules that Bind left out
	detailed bool                   // whether verdicts without a breach have an attribute of their own
}

// rule is an SLOConfig, ready to judge requests.
type rule struct {
	name               string
	verdictAttribute   string     // names.SLOVerdictPrefix and the name
	attribute          string     // of the indicator
	indicator          numbers.ID // unless the attribute is names.Outcome
	threshold          float64    // 0 for the outcome, which has none
	thresholdAttribute string
	clientErrors       slo.Verdict // on client mistakes
	matchers           []matcher
	use                *diagnostics.Lacking // requests that the SLO applies to
}

// matcher is a condition on an attribute: that it equals a value, or matches a pattern or lies in a range if there
// is one.
type matcher struct {
	attribute string
	equals    string
	pattern   *regexp.Regexp
	limits    *Range
}

// NewRules expects valid configurations. If detailed is true, a SpanJudge gives each verdict an attribute
// of its own, otherwise only each breach.
func NewRules(configs []SLOConfig, detailed bool) (*Rules, error) {
	rules := &Rules{defined: map[string]bool{}, detailed: detailed}
	for i := range configs {
		c := &configs[i]
		r := rule{name: c.Name, verdictAttribute: names.SLOVerdictPrefix + c.Name, attribute: names.Prefix + c.Indicator, thresholdAttribute: c.ThresholdAttribute, use: new(diagnostics.Lacking)}
		r.indicator = byAttribute[r.attribute]
		if c.ClientErrors == names.VerdictBad {
			r.clientErrors = slo.Bad
		}
		if r.attribute != names.Outcome {
			var err error
			if r.threshold, err = c.threshold(r.indicator.Row().Unit == numbers.Seconds); err != nil {
				return nil, err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Match)) {
			r.matchers = append(r.matchers, matcher{attribute: name, equals: c.Match[name]})
		}
		for _, name := range slices.Sorted(maps.Keys(c.MatchRegexp)) {
			pattern, err := compile(c.MatchRegexp[name])
			if err != nil {
				return nil, err
			}
			r.matchers = append(r.matchers, matcher{attribute: name, pattern: pattern})
		}
		for _, name := range slices.Sorted(maps.Keys(c.MatchRange)) {
			limits := c.MatchRange[name]
			r.matchers = append(r.matchers, matcher{attribute: name, limits: &limits})
		}
		rules.all, rules.defined[r.name] = append(rules.all, r), true
	}
	return rules, nil
}

// Uncounted returns a copy of the rules with counters of its own, for requests that the receiver judges
// by the original, too. Unapplied reads the counters of the original, so each request counts once.
func (r *Rules) Uncounted() *Rules {
	rules := &Rules{all: slices.Clone(r.all), defined: r.defined, detailed: r.detailed}
	for i := range rules.all {
		rules.all[i].use = new(diagnostics.Lacking)
	}
	return rules
}

// Definitions returns the SLOs with their configured thresholds.
func (r *Rules) Definitions() []slo.Definition {
	all := make([]slo.Definition, len(r.all))
	for i := range r.all {
		rule := &r.all[i]
		all[i] = slo.Definition{Name: rule.name, Indicator: strings.TrimPrefix(rule.attribute, names.Prefix), Threshold: rule.threshold}
	}
	return all
}

// Any reports whether there is an SLO.
func (r *Rules) Any() bool { return len(r.all) > 0 }

// verdictOn returns the verdict on a request that the SLO applies to. A client mistake is not eligible unless
// the SLO has `client_errors: bad`. A request that the Collector itself cut is not eligible for any SLO, and
// one that its user interrupted, and that did not fail, is never bad.
func (r *rule) verdictOn(request Subject) Verdict {
	threshold, verdict := r.thresholdOf(request), slo.NotEligible
	switch {
	case request.Mistaken():
		verdict = r.clientErrors
	case !request.Cut():
		verdict = r.judge(request, threshold)
	}
	if verdict == slo.Bad && request.Interrupted() && request.Outcome() == names.OutcomeCancelled {
		verdict = slo.NotEligible
	}
	return Verdict{r.name, verdict, strings.TrimPrefix(r.attribute, names.Prefix), threshold, r.verdictAttribute}
}

func (r *rule) judge(request Subject, threshold float64) slo.Verdict {
	if r.attribute == names.Outcome {
		return slo.JudgeOutcome(request.Outcome())
	}
	value := request.Number(r.indicator)
	switch r.indicator {
	// Zero stalls and zero clock anomalies are not written. A missing stall value counts as 0 if the
	// request has at least two chunks, and missing clock anomalies always do.
	case numbers.StallCount, numbers.StallDuration:
		value.Known = value.Known || request.Number(numbers.ChunkCount).Value > 1
	case numbers.ClockAnomalies:
		value.Known = true
	}
	return slo.Judge(value.Value, threshold, value.Known, request.Outcome() == names.OutcomeSuccess)
}

// appliesTo reports whether the request matches every condition.
func (r *rule) appliesTo(request Subject) bool {
	for i := range r.matchers {
		if !r.matchers[i].matches(request) {
			return false
		}
	}
	return true
}

func (m *matcher) matches(request Subject) bool {
	if m.limits != nil {
		n, ok := m.number(request)
		return ok && m.limits.holds(n)
	}
	text := "false"
	if v, ok := request.Attribute(m.attribute); ok {
		text = v.AsString()
	} else if !names.IsBoolean(m.attribute) {
		return false
	}
	if m.pattern != nil {
		return m.pattern.MatchString(text)
	}
	return m.equals == text
}

// number returns the attribute as a number. One of package numbers needs no span.
func (m *matcher) number(request Subject) (n float64, ok bool) {
	if id, ok := byAttribute[m.attribute]; ok {
		measure := request.Number(id)
		return measure.Value, measure.Known
	}
	v, ok := request.Attribute(m.attribute)
	if !ok {
		return 0, false
	}
	return attributes.Number(v)
}

// thresholdOf returns the threshold that the request carries if it is valid, or else the configured
// one.
func (r *rule) thresholdOf(request Subject) float64 {
	if r.thresholdAttribute == "" {
		return r.threshold
	}
	v, ok := request.Attribute(r.thresholdAttribute)
	if !ok {
		return r.threshold
	}
	own, ok := attributes.Number(v)
	if d, err := time.ParseDuration(v.Str()); !ok && err == nil {
		own, ok = float64(d)/float64(time.Second), true
	}
	if !ok || !(own > 0 && own <= attributes.MaxNumber) {
		return r.threshold
	}
	return own
}
