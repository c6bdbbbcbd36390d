// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package dedup

import (
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config decides for how long a Set remembers a request.
type Config struct {
	// Horizon is the time for which a request is remembered after it last arrived. Zero turns
	// deduplication off.
	Horizon time.Duration `mapstructure:"horizon"`
	// MaxSpans limits the requests that are remembered at a time.
	MaxSpans int `mapstructure:"max_spans"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config { return Config{Horizon: 10 * time.Minute, MaxSpans: 1_000_000} }

// Unmarshal rejects unknown keys, which the Collector would ignore below some components.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return conf.Unmarshal(c) }

// Limits of the configuration.
const (
	minHorizon  = time.Second
	maxHorizon  = 24 * time.Hour
	minMaxSpans = 2 // one per generation
	maxMaxSpans = 100_000_000
)

// Problems returns an error for each invalid key.
func (c *Config) Problems() (errs settings.Problems) {
	errs.Unless(c.Horizon == 0 || minHorizon <= c.Horizon && c.Horizon <= maxHorizon,
		"`deduplication::horizon` is %v; use 1s to 24h, such as 10m, or 0 to count repeated requests again", c.Horizon)
	errs.Unless(minMaxSpans <= c.MaxSpans && c.MaxSpans <= maxMaxSpans,
		"`deduplication::max_spans` is %d; use %d to %d, each taking about 16 bytes; to turn deduplication off, set `deduplication::horizon` to 0",
		c.MaxSpans, minMaxSpans, maxMaxSpans)
	return errs
}
