// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config limits how long engines with open requests may be without a token.
type Config struct {
	// Bound is the longest silence of an engine, beside what prompts explain.
	Bound time.Duration `mapstructure:"bound"`

	// Factor is by how much the prefill of the largest open prompt may exceed what was learned.
	Factor float64 `mapstructure:"factor"`

	// MaxBound limits both together.
	MaxBound time.Duration `mapstructure:"max_bound"`

	// MaxEngines limits the engines that are judged. Further ones have no state.
	MaxEngines int `mapstructure:"max_engines"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{Bound: 5 * time.Second, Factor: 3, MaxBound: 2 * time.Minute, MaxEngines: 1000}
}

// Check reports the settings below a key that cannot be used.
func (c *Config) Check(errs *settings.Problems, key string) {
	errs.Unless(c.Bound >= time.Second, "`%s::bound` is %s; use at least 1s, with a unit", key, c.Bound)
	errs.Unless(c.Factor >= 1 && c.Factor <= 100, "`%s::factor` is %v; use a number from 1 to 100", key, c.Factor)
	errs.Unless(c.MaxBound >= c.Bound, "`%s::max_bound` is %s, less than `bound`; use at least %s", key, c.MaxBound, c.Bound)
	errs.Unless(c.MaxEngines >= 1, "`%s::max_engines` is %d; use at least 1", key, c.MaxEngines)
}

func (c *Config) settings() liveness.Settings {
	return liveness.Settings{Base: c.Bound, Factor: c.Factor, MaxBound: c.MaxBound}
}
