package tokenlatencyprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/latency"
)

// Values of Config.Timeline.
const (
	timelineKeep = "keep"
	timelineDrop = "drop"
)

// denominators maps the values of Config.TPOTDenominator.
var denominators = map[string]latency.Denominator{
	"standard":          latency.AllButFirst,
	"after_first_chunk": latency.AfterFirstChunk,
}

// Config configures the token_latency processor.
type Config struct {
	// Timeline tells what becomes of the token arrivals on a span once they are
	// read: "keep" or "drop".
	Timeline string `mapstructure:"timeline"`
	// StallThreshold is the longest gap between two chunks that is not a stall.
	StallThreshold time.Duration `mapstructure:"stall_threshold"`
	// TPOTDenominator is what time per output token divides by: "standard" for all
	// tokens but the first, "after_first_chunk" for all but those of the first chunk.
	TPOTDenominator string `mapstructure:"tpot_denominator"`
	// Phases adds a child span for each phase of a model call that is known.
	Phases bool `mapstructure:"phases"`
	// Join hands what only an engine's span tells to its client's span of the same
	// request. Both have to be in one batch, as groupbytrace makes them.
	Join bool `mapstructure:"join"`
	// RollUp sums up a trace's model calls on its root span. All of them have to be
	// in one batch.
	RollUp bool `mapstructure:"roll_up"`
	// SLOs are what each request is judged by.
	SLOs []SLOConfig `mapstructure:"slos"`
	// Fluidity turns the fluidity index on.
	Fluidity configoptional.Optional[FluidityConfig] `mapstructure:"fluidity"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// FluidityConfig holds the deadlines that the fluidity index counts.
type FluidityConfig struct {
	// TimeToFirstToken is the deadline of the first token after the request's start.
	TimeToFirstToken time.Duration `mapstructure:"time_to_first_token"`
	// TimePerOutputToken is the deadline of each further token after the last one.
	TimePerOutputToken time.Duration `mapstructure:"time_per_output_token"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var (
	_ confmap.Validator = (*Config)(nil)
	_ confmap.Validator = (*FluidityConfig)(nil)
)

func createDefaultConfig() *Config {
	return &Config{
		Timeline:        timelineDrop,
		StallThreshold:  500 * time.Millisecond,
		TPOTDenominator: "standard",
	}
}

// shortestDuration is the least that makes sense for any setting here. A number
// without a unit counts as nanoseconds, and is less.
const shortestDuration = 100 * time.Microsecond

// Validate reports every setting that cannot be used.
func (c *Config) Validate() error {
	var errs error
	if c.Timeline != timelineKeep && c.Timeline != timelineDrop {
		errs = errors.Join(errs, fmt.Errorf("timeline is %q: choose %q or %q", c.Timeline, timelineKeep, timelineDrop))
	}
	if c.StallThreshold < shortestDuration {
		errs = errors.Join(errs, fmt.Errorf("stall_threshold is %s: give at least %s, with its unit, such as 500ms", c.StallThreshold, shortestDuration))
	}
	if _, ok := denominators[c.TPOTDenominator]; !ok {
		errs = errors.Join(errs, fmt.Errorf(`tpot_denominator is %q: choose "standard" or "after_first_chunk"`, c.TPOTDenominator))
	}
	if len(c.SLOs) > maxSLOs {
		errs = errors.Join(errs, fmt.Errorf("slos has %d entries: token_sli counts %d of a request, so more are not possible", len(c.SLOs), maxSLOs))
	}
	return errors.Join(errs, c.validateNames())
}

// maxSLOs is how many SLOs token_sli counts.
const maxSLOs = 64

// validateNames reports SLOs that cannot be told apart.
func (c *Config) validateNames() (errs error) {
	seen := map[string]int{}
	for i := range c.SLOs {
		name := c.SLOs[i].Name
		if first, taken := seen[name]; taken && name != "" {
			errs = errors.Join(errs, fmt.Errorf("slos::%d and slos::%d both have the name %q: give each its own", first, i, name))
		}
		seen[name] = i
	}
	return errs
}

// Validate reports a deadline that is missing or cannot be used.
func (c *FluidityConfig) Validate() error {
	return errors.Join(
		validateDeadline("time_to_first_token", c.TimeToFirstToken),
		validateDeadline("time_per_output_token", c.TimePerOutputToken),
	)
}

func validateDeadline(key string, deadline time.Duration) error {
	if deadline < shortestDuration || deadline > latency.MaxDeadline {
		return fmt.Errorf("%s is %s: the fluidity index needs both deadlines, each from %s to %s and with its unit; "+
			"leave fluidity out to turn the index off", key, deadline, shortestDuration, latency.MaxDeadline)
	}
	return nil
}

// options returns the settings in the terms of package latency.
func (c *Config) options() latency.Options {
	options := latency.Options{
		StallThreshold: c.StallThreshold,
		Denominator:    denominators[c.TPOTDenominator],
	}
	if fluidity := c.Fluidity.Get(); fluidity != nil {
		options.Fluidity = latency.Deadlines{
			FirstToken: fluidity.TimeToFirstToken,
			NextToken:  fluidity.TimePerOutputToken,
		}
	}
	return options
}
