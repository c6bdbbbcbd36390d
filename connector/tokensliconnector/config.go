// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/problems"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper"
)

// Config of the connector.
type Config struct {
	// Shared holds the settings that the token_sli exporter has, too.
	Shared keeper.Config `mapstructure:",squash"`
	// FlushInterval is the time between two batches of metrics, two checks of burn-rate
	// alerts, and two saves of error budgets.
	FlushInterval time.Duration `mapstructure:"metrics_flush_interval"`
	// Temporality of the metrics.
	Temporality Temporality `mapstructure:"temporality"`
	// EventAttributes are copied to breach events, from the span or else its resource.
	EventAttributes []string `mapstructure:"event_attributes"`

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

func createDefaultConfig() component.Config {
	return &Config{
		Shared:        keeper.NewDefaultConfig(),
		FlushInterval: 15 * time.Second,
		Temporality:   Cumulative,
	}
}

// minFlushInterval rejects a number without a unit, which would mean nanoseconds.
const minFlushInterval = 10 * time.Millisecond

// maxEventAttributes limits the attributes that are copied to an event.
const maxEventAttributes = 16

// Validate returns an error for each invalid key.
func (c *Config) Validate() error {
	errs := c.Shared.Problems()
	switch expiration := c.Shared.Series.SeriesExpiration; {
	case c.FlushInterval < minFlushInterval:
		errs = append(errs, fmt.Errorf("`metrics_flush_interval` is %v: it must be at least %v, such as 15s", c.FlushInterval, minFlushInterval))
	case expiration >= time.Second && expiration <= c.FlushInterval:
		errs = append(errs, fmt.Errorf("`series_expiration` is %v, but `metrics_flush_interval` is %v: series would expire before they are sent; raise `series_expiration`", expiration, c.FlushInterval))
	}
	errs.Unless(c.Temporality == Cumulative || c.Temporality == Delta, "`temporality` is %q: choose %s or %s", c.Temporality, Cumulative, Delta)
	return errors.Join(slices.Concat(errs, c.validateMetrics(), c.validateEventAttributes())...)
}

// validateMetrics rejects the gauges that only the exporter has.
func (c *Config) validateMetrics() (errs problems.List) {
	for _, name := range slices.Sorted(maps.Keys(c.Shared.Metrics)) {
		errs.Unless(!strings.HasSuffix(name, names.SuffixPercentile),
			"`metrics` has %q: the connector sends no percentile gauges; remove it, or use the token_sli exporter", name)
	}
	return errs
}

func (c *Config) validateEventAttributes() (errs problems.List) {
	all := c.EventAttributes
	errs.Unless(len(all) <= maxEventAttributes, "`event_attributes` has %d entries: the maximum is %d", len(all), maxEventAttributes)
	for i, name := range all {
		errs.Unless(name != "", "`event_attributes` entry %d is empty: enter the name of an attribute, such as user.id", i+1)
		errs.Unless(!names.HoldText(name), "`event_attributes` has %q, which may hold text of prompts or answers: events carry no text; remove it", name)
		errs.Unless(!strings.HasPrefix(name, names.Prefix), "`event_attributes` has %q: events have the attributes of tokenpulse already; remove it", name)
		errs.Unless(!slices.Contains(all[:i], name), "`event_attributes` has %q twice: remove one", name)
	}
	return errs
}
