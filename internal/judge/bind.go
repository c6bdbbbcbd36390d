// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Bind returns the rules that can apply to requests with the given attributes on span and resource:
// those that each of the requests has with the same value, those under `tokenpulse.` included.
// Attributes that Annotate writes and that are missing here differ from request to request.
func (r *Rules) Bind(attributes, resource pcommon.Map) *Rules {
	bound := &Rules{defined: r.defined, detailed: r.detailed}
	common := &annotatedSpan{attributes: attributes, resource: resource}
	for i := range r.all {
		if rule, applies := r.all[i].bind(common); applies {
			bound.all = append(bound.all, rule)
		} else {
			bound.missed = append(bound.missed, r.all[i].use)
		}
	}
	return bound
}

// bind returns the rule with the conditions, and the attribute of the threshold, that differ from
// request to request.
func (r *rule) bind(common *annotatedSpan) (bound rule, applies bool) {
	if r.indicator.OfTrace() {
		return rule{}, false
	}
	differs := func(name string) bool {
		_, ok := common.attributes.Get(name)
		return !ok && IsOfRequest(name)
	}
	bound, bound.matchers = *r, nil
	for _, m := range r.matchers {
		if differs(m.attribute) {
			bound.matchers = append(bound.matchers, m)
		} else if !m.matches(common) {
			return rule{}, false
		}
	}
	if !differs(r.thresholdAttribute) {
		bound.threshold, bound.thresholdAttribute = r.thresholdOf(common), ""
	}
	return bound, true
}

// IsOfRequest reports whether an attribute of a stream's span may be written, or depends on the end of
// the stream.
func IsOfRequest(name string) bool {
	isCount := func(id numbers.ID) bool { return id.Attribute() == name }
	return name == names.GenAIFinishReasons || strings.HasPrefix(name, names.Prefix) || slices.ContainsFunc(numbers.Usage, isCount)
}
