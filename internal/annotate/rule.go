// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// Rules are SLOs, ready to judge requests. They are safe for concurrent use.
type Rules struct {
	all     []rule
	defined map[string]bool // the names
}

// rule is an SLOConfig, ready to judge requests.
type rule struct {
	name               string
	attribute          string // of the indicator
	indicator          indicator
	threshold          float64 // 0 for the outcome, which has none
	thresholdAttribute string
	matchers           []matcher
	use                *use
}

// matcher is a condition on an attribute: that it equals a value, or matches a pattern if there is one.
type matcher struct {
	attribute string
	equals    string
	pattern   *regexp.Regexp
}

// NewRules expects valid configurations.
func NewRules(configs []SLOConfig) (*Rules, error) {
	rules := &Rules{defined: map[string]bool{}}
	for i := range configs {
		c := &configs[i]
		r := rule{name: c.Name, attribute: names.Prefix + c.Indicator, thresholdAttribute: c.ThresholdAttribute, use: new(use)}
		r.indicator = indicators[r.attribute]
		if r.attribute != names.Outcome {
			var err error
			if r.threshold, err = c.threshold(r.indicator.inSeconds); err != nil {
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
		rules.all, rules.defined[r.name] = append(rules.all, r), true
	}
	return rules, nil
}

// Uncounted returns a copy of the rules with counters of its own, for requests that the receiver judges
// by the original, too. Unapplied reads the counters of the original, so each request counts once.
func (r *Rules) Uncounted() *Rules {
	rules := &Rules{all: slices.Clone(r.all), defined: r.defined}
	for i := range rules.all {
		rules.all[i].use = new(use)
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

// ofTrace reports whether the SLO judges traces instead of requests.
func (r *rule) ofTrace() bool { return strings.HasPrefix(r.attribute, names.TracePrefix) }

// judge returns the verdict on a request that the SLO applies to. value is that of the indicator's
// attribute.
func (r *rule) judge(outcome string, value latency.Measure, threshold float64, severalChunks bool) slo.Verdict {
	switch r.attribute {
	case names.Outcome:
		return slo.JudgeOutcome(outcome)
	// Zero stalls and zero clock anomalies are not written. A missing stall value counts as 0 if the
	// request has at least two chunks, and missing clock anomalies always do.
	case names.StallCount, names.StallDuration:
		value.Known = value.Known || severalChunks
	case names.ClockAnomalies:
		value.Known = true
	}
	return slo.Judge(value.Value, threshold, value.Known, outcome == names.OutcomeSuccess)
}

// applies reports whether the request matches every condition.
func (r *rule) applies(attributes, resource pcommon.Map) bool {
	for i := range r.matchers {
		if !r.matchers[i].applies(attributes, resource) {
			return false
		}
	}
	return true
}

func (m *matcher) applies(attributes, resource pcommon.Map) bool {
	v, ok := LookUp(m.attribute, attributes, resource)
	return ok && m.matches(v.AsString())
}

func (m *matcher) matches(value string) bool {
	if m.pattern != nil {
		return m.pattern.MatchString(value)
	}
	return m.equals == value
}

// thresholdOf returns the threshold that the request carries if it is valid, or else the configured
// one.
func (r *rule) thresholdOf(attributes, resource pcommon.Map) float64 {
	if r.thresholdAttribute == "" {
		return r.threshold
	}
	v, ok := LookUp(r.thresholdAttribute, attributes, resource)
	if !ok {
		return r.threshold
	}
	own, ok := source.Number(v)
	if d, err := time.ParseDuration(v.Str()); !ok && err == nil {
		own, ok = float64(d)/float64(time.Second), true
	}
	if !ok || !(own > 0 && own <= MaxNumber) {
		return r.threshold
	}
	return own
}

// LookUp returns an attribute of the span, or else of its resource.
func LookUp(name string, attributes, resource pcommon.Map) (pcommon.Value, bool) {
	if v, ok := attributes.Get(name); ok {
		return v, true
	}
	return resource.Get(name)
}
