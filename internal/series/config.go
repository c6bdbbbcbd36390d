// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config decides which requests share a series, and limits the number of series.
type Config struct {
	// Dimensions are the attributes that distinguish series.
	Dimensions Dimensions `mapstructure:"dimensions" use:"the name of an attribute, or a section with the keys attribute, bands, label"`
	// MaxSeries limits the series held at a time. Requests of further series go to the
	// overflow series.
	MaxSeries int `mapstructure:"max_series"`
	// SeriesExpiration is the time after which a series without a request is removed.
	// Zero means never.
	SeriesExpiration time.Duration `mapstructure:"series_expiration"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config {
	return Config{
		Dimensions:       DimensionsOf(names.ServiceName, names.GenAIProviderName, names.GenAIRequestModel, names.GenAIOperationName),
		MaxSeries:        2000,
		SeriesExpiration: time.Hour,
	}
}

// isIdle reports whether a series without a request for d expires.
func (c *Config) isIdle(d time.Duration) bool {
	return c.SeriesExpiration > 0 && d > c.SeriesExpiration
}

// Problems returns an error for each invalid key. It is not named Validate: the Collector would
// call it, too, and prefix its errors with the path of a squashed key, which the user's YAML does
// not have.
func (c *Config) Problems() settings.Problems {
	errs := c.Dimensions.problems()
	errs.Unless(c.MaxSeries > 0, "`max_series` is %d; use at least 1; requests of further series go to the overflow series", c.MaxSeries)
	errs.Unless(c.SeriesExpiration == 0 || c.SeriesExpiration >= time.Second,
		"`series_expiration` is %v; use at least 1s, or 0 to keep series forever", c.SeriesExpiration)
	return errs
}
