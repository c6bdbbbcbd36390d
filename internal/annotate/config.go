// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Values of Config.Timeline.
const (
	TimelineKeep = "keep"
	TimelineDrop = "drop"
)

// denominators maps the values of Config.TPOTDenominator.
var denominators = map[string]latency.Denominator{
	"standard":          latency.AllButFirst,
	"after_first_chunk": latency.AfterFirstChunk,
}

// Config is the configuration of the token_latency processor, and of the token_stream receiver's
// `latency`.
type Config struct {
	// Timeline is "drop" to remove tokenpulse.timeline from a span once it is read, or "keep" to
	// leave it, at about three bytes per token.
	Timeline string `mapstructure:"timeline" use:"keep or drop"`
	// Detail is "standard" to write the numbers that token_sli's default metrics and the SLOs of this
	// processor need, or "full" to write every number.
	Detail string `mapstructure:"detail" use:"standard or full"`
	// Distribution is "keep" to write the sketches that token_sli merges, or "drop" for pipelines that
	// only store traces.
	Distribution string `mapstructure:"distribution" use:"keep or drop"`
	// TrustAnnotations keeps the numbers and verdicts that a token_latency processor in another
	// Collector wrote on a span. If false, they are removed from every span before it is read, because
	// a sender may have forged them.
	TrustAnnotations bool `mapstructure:"trust_annotations"`
	// StallThreshold is the longest gap between two chunks that does not count as a stall.
	StallThreshold time.Duration `mapstructure:"stall_threshold"`
	// TPOTDenominator is the number of tokens that time per output token divides by: "standard" for
	// N - 1, "after_first_chunk" for all tokens after those of the first chunk.
	TPOTDenominator string `mapstructure:"tpot_denominator" use:"standard or after_first_chunk"`
	// Events adds span events at the first token, the longest stalls and the last token.
	Events bool `mapstructure:"events"`
	// Phases adds child spans queue, prefill and decode to a model call, as far as they are known.
	Phases bool `mapstructure:"phases"`
	// Join copies queue, prefill and decode from an engine's span to the client's span of the same
	// request. It needs whole traces in one batch.
	Join bool `mapstructure:"join"`
	// RollUp sums a trace's model calls on its root span. It needs whole traces in one batch.
	RollUp bool `mapstructure:"roll_up"`
	// SLOs judge each request. There may be at most 64.
	SLOs []judge.SLOConfig `mapstructure:"slos"`
	// Fluidity turns the fluidity index on.
	Fluidity configoptional.Optional[FluidityConfig] `mapstructure:"fluidity"`
	// ColdStart marks the cold requests of each replica.
	ColdStart configoptional.Optional[ColdStartConfig] `mapstructure:"cold_start"`

	chunkGaps bool // see WithChunkGaps

	// prevent unkeyed literal initialization
	_ struct{}
}

// FluidityConfig holds the deadlines of the fluidity index, each at most an hour.
type FluidityConfig struct {
	// TimeToFirstToken is the deadline of the first token after the request's start.
	TimeToFirstToken time.Duration `mapstructure:"time_to_first_token"`
	// TimePerOutputToken is the deadline of each further token after the previous deadline.
	TimePerOutputToken time.Duration `mapstructure:"time_per_output_token"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Validator   = (*FluidityConfig)(nil)
)

// DefaultConfig returns the settings without any key.
func DefaultConfig() *Config {
	return &Config{
		Timeline:         TimelineDrop,
		Detail:           DetailStandard,
		Distribution:     DistributionKeep,
		TrustAnnotations: true,
		StallThreshold:   500 * time.Millisecond,
		TPOTDenominator:  "standard",
		ColdStart:        configoptional.Default(ColdStartConfig{Requests: 10, Duration: 2 * time.Minute, Idle: 15 * time.Minute}),
	}
}

// Unmarshal decodes the settings.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

// minDuration is the minimum of every duration. It rejects a number without a unit, which YAML reads
// as nanoseconds.
const minDuration = 100 * time.Microsecond

// maxSLOs is the number of SLOs that token_sli counts per request.
const maxSLOs = 64

// Validate reports every invalid setting.
func (c *Config) Validate() error {
	var errs settings.Problems
	errs.Unless(c.Timeline == TimelineKeep || c.Timeline == TimelineDrop, "`timeline` is %q; valid values: %s, %s", c.Timeline, TimelineKeep, TimelineDrop)
	errs.Unless(c.Detail == DetailStandard || c.Detail == DetailFull, "`detail` is %q; valid values: %s, %s", c.Detail, DetailStandard, DetailFull)
	errs.Unless(c.Distribution == DistributionKeep || c.Distribution == DistributionDrop,
		"`distribution` is %q; valid values: %s, %s", c.Distribution, DistributionKeep, DistributionDrop)
	errs.Unless(c.StallThreshold >= minDuration, "`stall_threshold` is %s; use at least %s, with a unit, such as 500ms", c.StallThreshold, minDuration)
	_, known := denominators[c.TPOTDenominator]
	errs.Unless(known, "`tpot_denominator` is %q; valid values: standard, after_first_chunk", c.TPOTDenominator)
	errs.Unless(len(c.SLOs) <= maxSLOs, "`slos` has %d entries; the maximum is %d", len(c.SLOs), maxSLOs)
	seen := map[string]int{}
	for i := range c.SLOs {
		name := c.SLOs[i].Name
		first, taken := seen[name]
		errs.Unless(!taken || name == "", "`slos::%d` and `slos::%d` are both named %q; rename one", first, i, name)
		seen[name] = i
	}
	return errors.Join(errs...)
}

// Validate reports a deadline that is missing or out of range.
func (c *FluidityConfig) Validate() error {
	return errors.Join(
		validateDeadline("time_to_first_token", c.TimeToFirstToken),
		validateDeadline("time_per_output_token", c.TimePerOutputToken),
	)
}

func validateDeadline(key string, deadline time.Duration) error {
	if deadline < minDuration || deadline > latency.MaxDeadline {
		return fmt.Errorf("`%s` is %s; `fluidity` needs both deadlines, each from %s to %s, with a unit; "+
			"remove `fluidity` to turn the index off", key, deadline, minDuration, latency.MaxDeadline)
	}
	return nil
}

// Options converts the settings for package latency.
func (c *Config) Options() latency.Options {
	options := latency.Options{
		StallThreshold: c.StallThreshold,
		Denominator:    denominators[c.TPOTDenominator],
		Moments:        c.Events,
	}
	for id := range numbers.Count {
		options.Omitted[id] = !c.Writes(id)
	}
	if fluidity := c.Fluidity.Get(); fluidity != nil {
		options.Fluidity = latency.Deadlines{
			FirstToken: fluidity.TimeToFirstToken,
			NextToken:  fluidity.TimePerOutputToken,
		}
	}
	return options
}
