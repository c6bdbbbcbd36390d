// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"maps"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Values of Config.Detail.
const (
	DetailStandard = "standard"
	DetailFull     = "full"
)

// Values of Config.Distribution.
const (
	DistributionKeep = "keep"
	DistributionDrop = "drop"
)

// isFullOnly reports whether an attribute is left out with `detail: standard`. These numbers follow
// from others, or are shown by metrics that token_sli does not enable by default.
func isFullOnly(name string) bool {
	return name == names.DecodeShare || name == names.OutputTokenRate || name == names.RequestTokenRate ||
		name == names.InterTokenLatency+names.SuffixMean ||
		name == interChunk.sketch || slices.Contains(interChunk.statistics[:], name)
}

// Writes reports whether the attribute is written. SLOs of this processor get the attributes that
// they need. token_sli falls back to the inter-token sketch where a span has inter-chunk statistics
// and no inter-chunk sketch, so the statistics that an SLO needs come with the sketch.
func (c *Config) Writes(name string) bool {
	switch {
	case c.Distribution == DistributionDrop && (name == interToken.sketch || name == interChunk.sketch):
		return false
	case c.Detail == DetailFull || !isFullOnly(name):
		return true
	case name == interChunk.sketch:
		return slices.ContainsFunc(interChunk.statistics[:], c.judges)
	default:
		return c.judges(name)
	}
}

// judges reports whether an SLO reads the attribute.
func (c *Config) judges(name string) bool {
	return slices.ContainsFunc(c.SLOs, func(s SLOConfig) bool {
		_, matched := s.Match[name]
		_, matchedByPattern := s.MatchRegexp[name]
		return names.Prefix+s.Indicator == name || s.ThresholdAttribute == name || matched || matchedByPattern
	})
}

// ToNanosecond rounds seconds, which are not negative, to the nanosecond. Longer fractions are noise of
// the division, and cost up to 20 characters in JSON. It rounds as math.Round does, but math.Trunc is a
// single instruction.
func ToNanosecond(seconds float64) float64 {
	nanos := float64(seconds * 1e9) // rounded: arm64 would fuse it with the subtraction
	whole := math.Trunc(nanos)
	if nanos-whole >= 0.5 {
		whole++
	}
	return whole / 1e9
}

// AttributesRead returns the attributes that the conditions and thresholds of the SLOs read.
func (c *Config) AttributesRead() (read []string) {
	for i := range c.SLOs {
		s := &c.SLOs[i]
		read = append(read, s.ThresholdAttribute)
		read = slices.AppendSeq(read, maps.Keys(s.Match))
		read = slices.AppendSeq(read, maps.Keys(s.MatchRegexp))
	}
	return read
}

// ReadsPercentiles reports whether an SLO reads a percentile of the gaps of a request.
func (c *Config) ReadsPercentiles() bool {
	for _, d := range []*distribution{&interToken, &interChunk} {
		for _, p := range []latency.Statistic{latency.P50, latency.P95, latency.P99} {
			if c.judges(d.statistics[p]) {
				return true
			}
		}
	}
	return false
}
