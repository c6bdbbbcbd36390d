// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config holds the settings of every component that sends series as metrics.
type Config struct {
	// Shared holds the settings that the token_sli exporter has, too.
	Shared keeper.Config `mapstructure:",squash"`
	// FlushInterval is the time between two rounds: batches of metrics, checks of burn-rate
	// alerts, and saves of error budgets.
	FlushInterval time.Duration `mapstructure:"metrics_flush_interval"`
	// Temporality of the metrics.
	Temporality Temporality `mapstructure:"temporality" use:"cumulative or delta"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Temporality is the period that a data point covers.
type Temporality string

const (
	// Cumulative data points cover the time since their series started.
	Cumulative Temporality = "cumulative"
	// Delta data points cover the time since the previous flush.
	Delta Temporality = "delta"
)

// NewDefaultConfig returns the defaults. Open streams and engines are off: the token_sli exporter has them, too.
func NewDefaultConfig() Config {
	c := Config{
		Shared:        keeper.NewDefaultConfig(),
		FlushInterval: 15 * time.Second,
		Temporality:   Cumulative,
	}
	c.Shared.Metrics = map[string]keeper.Metric{}
	for _, name := range [...]string{names.StreamsOpen, names.EngineState, names.EngineSilence} {
		c.Shared.Metrics[name] = keeper.Metric{Enabled: false}
	}
	return c
}

// minFlushInterval rejects a number without a unit, which would mean nanoseconds.
const minFlushInterval = 10 * time.Millisecond

// Problems returns an error for each invalid key. Like series.Config.Problems it is not
// named Validate.
func (c *Config) Problems() settings.Problems {
	errs := c.Shared.Problems()
	switch expiration := c.Shared.Series.SeriesExpiration; {
	case c.FlushInterval < minFlushInterval:
		errs = append(errs, fmt.Errorf("`metrics_flush_interval` is %v; use at least %v, such as 15s", c.FlushInterval, minFlushInterval))
	case expiration >= time.Second && expiration <= c.FlushInterval:
		errs = append(errs, fmt.Errorf("`series_expiration` is %v, but `metrics_flush_interval` is %v, so series would expire before they are sent; raise `series_expiration`", expiration, c.FlushInterval))
	}
	errs.Unless(c.Temporality == Cumulative || c.Temporality == Delta, "`temporality` is %q; choose %s or %s", c.Temporality, Cumulative, Delta)
	return append(errs, c.metricProblems()...)
}

// metricProblems rejects the gauges that only the exporter has.
func (c *Config) metricProblems() (errs settings.Problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Shared.Metrics)) {
		errs.Unless(!strings.HasSuffix(name, names.SuffixPercentile),
			"`metrics` has %q, but only the token_sli exporter has percentile gauges; remove it here, and set it there", name)
	}
	return errs
}
