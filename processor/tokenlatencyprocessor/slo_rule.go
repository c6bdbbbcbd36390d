// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// rule is an SLOConfig, ready to judge requests.
type rule struct {
	name               string
	indicator          string  // an attribute
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

// newRules expects valid configurations.
func newRules(configs []SLOConfig) ([]rule, error) {
	var rules []rule
	for i := range configs {
		c := &configs[i]
		indicator := names.Prefix + c.Indicator
		r := rule{name: c.Name, indicator: indicator, thresholdAttribute: c.ThresholdAttribute, use: new(use)}
		if indicator != names.Outcome {
			var err error
			if r.threshold, err = c.threshold(indicators[indicator]); err != nil {
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
		rules = append(rules, r)
	}
	return rules, nil
}

// ofTrace reports whether the SLO judges traces instead of requests.
func (r *rule) ofTrace() bool { return strings.HasPrefix(r.indicator, names.TracePrefix) }

// judge returns the verdict on a request that the SLO applies to.
func (r *rule) judge(attributes pcommon.Map, threshold float64) slo.Verdict {
	outcome := text(attributes, names.Outcome)
	if r.indicator == names.Outcome {
		return slo.JudgeOutcome(outcome)
	}
	value := indicated(attributes, r.indicator)
	return slo.Judge(value.Value, threshold, value.Known, outcome == names.OutcomeSuccess)
}

// indicated returns the value of an indicator. Stalls and anomalies are not written when there are
// none: their value is then 0, if there were chunks that could have shown one.
func indicated(attributes pcommon.Map, indicator string) latency.Measure {
	value := measured(attributes, indicator)
	switch indicator {
	case names.StallCount, names.StallDuration:
		value.Known = value.Known || measured(attributes, names.ChunkCount).Value > 1
	case names.ClockAnomalies:
		value.Known = true
	}
	return value
}

// applies reports whether the request matches every condition.
func (r *rule) applies(attributes, resource pcommon.Map) bool {
	for _, m := range r.matchers {
		v, ok := lookUp(m.attribute, attributes, resource)
		if !ok || !m.matches(v.AsString()) {
			return false
		}
	}
	return true
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
	v, ok := lookUp(r.thresholdAttribute, attributes, resource)
	if !ok {
		return r.threshold
	}
	own, ok := attribute.Number(v)
	if d, err := time.ParseDuration(v.Str()); !ok && err == nil {
		own, ok = float64(d)/float64(time.Second), true
	}
	if !ok || !(own > 0 && own <= maxNumber) {
		return r.threshold
	}
	return own
}

// lookUp returns an attribute of the span, or else of its resource.
func lookUp(name string, attributes, resource pcommon.Map) (pcommon.Value, bool) {
	if v, ok := attributes.Get(name); ok {
		return v, true
	}
	return resource.Get(name)
}
