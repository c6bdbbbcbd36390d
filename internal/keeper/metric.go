// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Metric is an entry of `metrics`, in the form of the Collector's scrapers.
type Metric struct {
	// Enabled switches the metric on or off.
	Enabled bool `mapstructure:"enabled"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal rejects an entry that switches nothing.
func (m *Metric) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(m); err != nil {
		return err
	}
	if !conf.IsSet("enabled") {
		return errors.New("`enabled` is missing; set it to true or false")
	}
	return nil
}

// Selection returns the metrics that are switched on or off.
func (c *Config) Selection() series.Selection {
	selection := series.Selection{}
	for name, m := range c.Metrics {
		selection[name] = m.Enabled
	}
	return selection
}

// metricProblems returns an error for each name that is not a metric, or one of conventions that are not published.
func metricProblems(metrics map[string]Metric, published *conventions.Config) (errs settings.Problems) {
	valid, standard := series.MetricNames(), conventions.Names(published.GenAI...)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		switch {
		case slices.Contains(valid, name) || slices.Contains(standard, name):
		case slices.Contains(conventions.Names(conventions.GenerationNames[:]...), name):
			errs = append(errs, fmt.Errorf("`metrics` has %q, which is not published; add its generation to `conventions::gen_ai`, or remove it", name))
		default:
			errs = append(errs, fmt.Errorf("`metrics` has the unknown metric %q; valid names: %s", name, strings.Join(append(valid, standard...), ", ")))
		}
	}
	return errs
}
