// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"maps"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
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

// Writes reports whether a number is written. SLOs of this processor get the attributes that
// they need. token_sli falls back to the inter-token sketch where a span has inter-chunk statistics
// and no inter-chunk sketch, so the statistics that an SLO needs come with the sketch.
func (c *Config) Writes(id numbers.ID) bool {
	switch {
	case c.chunkGaps && (id == numbers.InterChunkLatency || id == numbers.InterChunkMax):
		return true
	case id.IsDistribution() && c.Distribution == DistributionDrop:
		return false
	case c.Detail == DetailFull || !id.Row().Full:
		return true
	case id == numbers.InterChunkLatency:
		return c.judgesAny(numbers.InterChunkMean, numbers.InterChunkMax)
	default:
		return c.judges(id.Attribute())
	}
}

// WithChunkGaps returns settings that write the distribution of the gaps between chunks, whatever their detail.
func (c *Config) WithChunkGaps() *Config {
	with := *c
	with.chunkGaps = true
	return &with
}

// judgesAny reports whether an SLO reads one of the numbers, from first to last.
func (c *Config) judgesAny(first, last numbers.ID) bool {
	for id := first; id <= last; id++ {
		if c.judges(id.Attribute()) {
			return true
		}
	}
	return false
}

// judges reports whether an SLO reads the attribute.
func (c *Config) judges(name string) bool {
	isIndicator := func(s judge.SLOConfig) bool { return names.Prefix+s.Indicator == name }
	return slices.ContainsFunc(c.SLOs, isIndicator) || slices.Contains(c.AttributesRead(), name)
}

// Rules returns the SLOs, ready to judge requests.
func (c *Config) Rules() (*judge.Rules, error) { return judge.NewRules(c.SLOs, c.Detail == DetailFull) }

// AttributesRead returns the attributes that the conditions and thresholds of the SLOs read.
func (c *Config) AttributesRead() (read []string) {
	for i := range c.SLOs {
		s := &c.SLOs[i]
		read = append(read, s.ThresholdAttribute)
		read = slices.AppendSeq(read, maps.Keys(s.Match))
		read = slices.AppendSeq(read, maps.Keys(s.MatchRegexp))
		read = slices.AppendSeq(read, maps.Keys(s.MatchRange))
	}
	return read
}

// SeriesOptions are Options without the percentiles of the gaps of a request that no SLO reads: series
// merge the gaps themselves.
func (c *Config) SeriesOptions() latency.Options {
	options := c.Options()
	for _, id := range numbers.GapPercentiles {
		options.Omitted[id] = !c.judges(id.Attribute())
	}
	return options
}
