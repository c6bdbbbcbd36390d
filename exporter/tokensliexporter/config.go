// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/problems"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper"
)

// Config of the exporter.
type Config struct {
	// Server serves the metrics.
	Server confighttp.ServerConfig `mapstructure:",squash"`
	// Shared holds the settings that the token_sli connector has, too.
	Shared keeper.Config `mapstructure:",squash"`
	// Quantiles are those of the quantile gauges, between 0 and 1. Empty turns the gauges
	// off.
	Quantiles []float64 `mapstructure:"quantiles"`
	// Windows are the sliding windows of the quantile gauges. Empty turns the gauges off.
	Windows []time.Duration `mapstructure:"windows"`
	// ClassicBuckets replaces the upper bounds of a histogram's classic buckets, by metric
	// name without `tokenpulse.`. The native buckets are fixed.
	ClassicBuckets map[string][]float64 `mapstructure:"classic_buckets"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:9464"
	return &Config{
		Server:    server,
		Shared:    keeper.NewDefaultConfig(),
		Quantiles: []float64{0.5, 0.9, 0.95, 0.99, 0.999},
		Windows:   []time.Duration{time.Minute, 5 * time.Minute, time.Hour},
	}
}

// Limits of the configuration. Every quantile of every window is a time series of each
// histogram.
const (
	maxQuantiles      = 20
	maxWindows        = 6
	minWindow         = 10 * time.Second
	maxWindow         = 24 * time.Hour
	maxClassicBuckets = 200
)

// Validate returns an error for each invalid key.
func (c *Config) Validate() error {
	var errs problems.List
	errs.Unless(c.Server.NetAddr.Endpoint != "", "`endpoint` is empty: enter the address to serve metrics on, such as localhost:9464")
	_, err := dimensionLabels(c.Shared.Series.Dimensions)
	return errors.Join(slices.Concat(errs, problems.List{err}, c.Shared.Problems(), c.validateQuantiles(), c.validateWindows(), c.validateClassicBuckets())...)
}

func (c *Config) validateQuantiles() (errs problems.List) {
	errs.Unless(len(c.Quantiles) <= maxQuantiles, "`quantiles` has %d entries: the maximum is %d", len(c.Quantiles), maxQuantiles)
	for i, q := range c.Quantiles {
		errs.Unless(q > 0 && q < 1, "`quantiles` has %v: a quantile is above 0 and below 1, such as 0.99", q)
		errs.Unless(!slices.Contains(c.Quantiles[:i], q), "`quantiles` has %v twice: remove one", q)
	}
	return errs
}

func (c *Config) validateWindows() (errs problems.List) {
	errs.Unless(len(c.Windows) <= maxWindows, "`windows` has %d entries: the maximum is %d", len(c.Windows), maxWindows)
	for i, w := range c.Windows {
		errs.Unless(minWindow <= w && w <= maxWindow && w%time.Second == 0,
			"`windows` has %v: a window must be whole seconds, from %v to %v", w, minWindow, maxWindow)
		errs.Unless(!slices.Contains(c.Windows[:i], w), "`windows` has %v twice: remove one", w)
	}
	return errs
}

func (c *Config) validateClassicBuckets() (errs problems.List) {
	var known []string
	for _, h := range series.Histograms {
		known = append(known, strings.TrimPrefix(h.Name, names.Prefix))
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range slices.Sorted(maps.Keys(c.ClassicBuckets)) {
		errs.Unless(slices.Contains(known, name), "`classic_buckets` has the unknown histogram %q; valid names: %s", name, strings.Join(known, ", "))
		if err := validateBounds(c.ClassicBuckets[name]); err != nil {
			errs = append(errs, fmt.Errorf("`classic_buckets::%s` %w", name, err))
		}
	}
	return errs
}

func validateBounds(bounds []float64) error {
	if len(bounds) == 0 {
		return errors.New("is empty: list upper bounds, or remove the key to use the defaults")
	}
	if len(bounds) > maxClassicBuckets {
		return fmt.Errorf("has %d bounds: the maximum is %d", len(bounds), maxClassicBuckets)
	}
	below := 0.0
	for _, bound := range bounds {
		if !(bound > 0) || math.IsInf(bound, 0) {
			return fmt.Errorf("has the bound %v: bounds must be above 0 and finite; the +Inf bucket is always present", bound)
		}
		if bound <= below {
			return fmt.Errorf("has %v after %v: list bounds in ascending order, without duplicates", bound, below)
		}
		below = bound
	}
	return nil
}

// options returns the options of the engine.
func (c *Config) options() series.Options {
	bounds := map[string][]float64{}
	for name, b := range c.ClassicBuckets {
		bounds[names.Prefix+name] = b
	}
	o := c.Shared.EngineOptions()
	o.Windows, o.Quantiles, o.ClassicBounds = c.Windows, c.Quantiles, bounds
	return o
}
