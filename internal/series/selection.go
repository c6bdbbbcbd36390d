// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Selection switches metrics on and off, by name. A metric without an entry has its
// default.
type Selection map[string]bool

// metricDefaults holds every metric that a Selection may name, and whether it is on by
// default. Off are numbers that follow from others (the rate is 1 / time per output
// token) or equal others for most models.
var metricDefaults = func() map[string]bool {
	defaults := map[string]bool{}
	for _, h := range Histograms {
		defaults[h.Name] = true
		defaults[h.Name+names.SuffixPercentile] = false
	}
	for _, c := range Counters {
		defaults[c.Name] = true
	}
	for _, m := range []Metric{Requests, SLORequests, SLOObjective, SLOBurnRate, SLOBudgetRemaining} {
		defaults[m.Name] = true
	}
	for _, name := range []string{names.TimeToFirstOutputToken, names.InterChunkLatency, names.OutputTokenRate} {
		defaults[name] = false
	}
	for _, name := range []string{names.TimeToFirstToken, names.TimePerOutputToken, names.InterTokenLatency, names.RequestDuration} {
		defaults[name+names.SuffixPercentile] = true
	}
	return defaults
}()

// MetricNames returns the names that a Selection may have, sorted.
func MetricNames() []string { return slices.Sorted(maps.Keys(metricDefaults)) }

// Has reports whether a metric is on.
func (s Selection) Has(name string) bool {
	if on, ok := s[name]; ok {
		return on
	}
	return metricDefaults[name]
}
