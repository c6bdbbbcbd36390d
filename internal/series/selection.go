// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Selection switches metrics on and off, by name. A metric without an entry has its
// default.
type Selection map[string]bool

// metricDefaults holds every metric that a Selection may name, and whether it is on by
// default.
var metricDefaults = func() map[string]bool {
	defaults := map[string]bool{}
	for _, id := range numbers.Histograms {
		row := id.Row()
		defaults[row.Metric.Name] = !row.Off
		defaults[row.Metric.Name+names.SuffixPercentile] = row.Percentiles
	}
	for _, c := range Counters {
		defaults[c.Name] = !c.Off
	}
	for _, m := range append(Gauges[:], Requests, SLORequests, StreamsOpen, EngineState, EngineSilence) {
		defaults[m.Name] = true
	}
	return defaults
}()

// MetricNames returns the names that a Selection may have, sorted.
func MetricNames() []string { return slices.Sorted(maps.Keys(metricDefaults)) }

// NoMetrics returns a selection of none.
func NoMetrics() Selection {
	none := Selection{}
	for name := range metricDefaults {
		none[name] = false
	}
	return none
}

// Has reports whether a metric is on.
func (s Selection) Has(name string) bool {
	if on, ok := s[name]; ok {
		return on
	}
	return metricDefaults[name]
}
