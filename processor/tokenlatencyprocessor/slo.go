package tokenlatencyprocessor

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// slo judges requests by one objective.
type slo struct {
	name               string
	indicator          string // an attribute
	threshold          float64
	thresholdAttribute string
	vantage            string
	matchers           []matcher
}

// matcher is what an attribute must be.
type matcher struct {
	attribute string
	equals    string
	pattern   *regexp.Regexp // in the place of equals
}

// newSLOs expects configurations that are valid.
func newSLOs(configs []SLOConfig) ([]slo, error) {
	var slos []slo
	for i := range configs {
		c := &configs[i]
		indicator := names.Prefix + c.Indicator
		threshold, err := c.threshold(indicators[indicator])
		if err != nil {
			return nil, err
		}
		s := slo{
			name: c.Name, indicator: indicator, threshold: threshold,
			thresholdAttribute: c.ThresholdAttribute, vantage: c.Vantage,
		}
		for _, name := range slices.Sorted(maps.Keys(c.Match)) {
			s.matchers = append(s.matchers, matcher{attribute: name, equals: c.Match[name]})
		}
		for _, name := range slices.Sorted(maps.Keys(c.MatchRegexp)) {
			pattern, err := compile(c.MatchRegexp[name])
			if err != nil {
				return nil, err
			}
			s.matchers = append(s.matchers, matcher{attribute: name, pattern: pattern})
		}
		slos = append(slos, s)
	}
	return slos, nil
}

func namesOf(slos []slo) (all []string) {
	for i := range slos {
		all = append(all, slos[i].name)
	}
	return all
}

// judge writes the verdict of every objective on each model call. It goes by what
// the spans carry, whichever processor wrote it.
func judge(traces ptrace.Traces, slos []slo) {
	defined := map[string]bool{}
	for i := range slos {
		defined[slos[i].name] = true
	}
	for _, resourceSpans := range traces.ResourceSpans().All() {
		resource := resourceSpans.Resource().Attributes()
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				if !isAnnotated(span) {
					forgetAllVerdicts(span.Attributes())
					continue
				}
				forgetVerdicts(span.Attributes(), defined)
				judgeSpan(span.Attributes(), resource, slos)
			}
		}
	}
}

func judgeSpan(attributes, resource pcommon.Map, slos []slo) {
	for i := range slos {
		if s := &slos[i]; s.applies(attributes, resource) {
			threshold := s.thresholdOf(attributes, resource)
			putVerdict(attributes, s.judge(attributes, threshold), s, threshold)
		}
	}
}

// judge returns the verdict on a request that the objective applies to. One without
// the indicator is bad if it did not succeed: an aborted stream is not a fast one. A
// success without it, such as an answer of one token that has no time per output
// token, is not eligible.
func (s *slo) judge(attributes pcommon.Map, threshold float64) verdict {
	value := measured(attributes, s.indicator)
	switch {
	case value.Known && value.Value <= threshold:
		return met
	case value.Known || text(attributes, names.Outcome) != names.OutcomeSuccess:
		return breached
	default:
		return notEligible
	}
}

func (s *slo) applies(attributes, resource pcommon.Map) bool {
	if s.vantage != "" && s.vantage != text(attributes, names.Vantage) {
		return false
	}
	for _, m := range s.matchers {
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

// thresholdOf returns the request's own threshold, if it has one that makes sense.
func (s *slo) thresholdOf(attributes, resource pcommon.Map) float64 {
	if s.thresholdAttribute == "" {
		return s.threshold
	}
	v, ok := lookUp(s.thresholdAttribute, attributes, resource)
	if !ok {
		return s.threshold
	}
	own, ok := attribute.Number(v)
	if d, err := time.ParseDuration(v.Str()); !ok && err == nil {
		own, ok = float64(d)/float64(time.Second), true
	}
	if !ok || !(own > 0 && own <= maxNumber) {
		return s.threshold
	}
	return own
}

// lookUp finds an attribute on the span, or else on its resource.
func lookUp(name string, attributes, resource pcommon.Map) (pcommon.Value, bool) {
	if v, ok := attributes.Get(name); ok {
		return v, true
	}
	return resource.Get(name)
}
