// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"slices"

	"go.opentelemetry.io/collector/component"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Config holds the settings that the token_sli exporter and connector share.
type Config struct {
	// Series decides which requests share a series.
	Series series.Config `mapstructure:",squash"`
	// Metrics switches metrics on and off, by name.
	Metrics map[string]Metric `mapstructure:"metrics"`
	// Objectives are the SLO objectives to report burn rates and error budgets for.
	Objectives []Objective `mapstructure:"objectives"`
	// StorageID is the extension that keeps burn rates and error budgets across
	// restarts. Without it they start empty.
	StorageID *component.ID `mapstructure:"storage"`
	// Conventions publishes the requests under the names of OpenTelemetry's conventions, too.
	Conventions conventions.Config `mapstructure:"conventions"`
	// Deduplication decides for how long a request that is sent again is recognised.
	Deduplication dedup.Config `mapstructure:"deduplication"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config {
	return Config{Series: series.NewDefaultConfig(), Deduplication: dedup.NewDefaultConfig()}
}

// Problems returns an error for each invalid key. Like series.Config.Problems it is not
// named Validate.
func (c *Config) Problems() settings.Problems {
	return slices.Concat(c.Series.Problems(), metricProblems(c.Metrics, &c.Conventions), objectiveProblems(c.Objectives), c.Conventions.Problems(), c.Deduplication.Problems())
}

// EngineOptions returns the options of an engine of these series.
func (c *Config) EngineOptions() series.Options {
	return series.Options{Config: c.Series, Metrics: c.Selection(), Objectives: c.ObjectiveNames(), Conventions: c.Conventions}
}

// ObjectiveNames returns the SLOs of the objectives, as verdicts have them.
func (c *Config) ObjectiveNames() slo.Names { return slo.NamesOf(c.SLOObjectives()) }

// SLOObjectives returns the objectives with clean SLO names, as verdicts have them.
func (c *Config) SLOObjectives() []slo.Objective {
	var all []slo.Objective
	for _, o := range c.Objectives {
		o.SLO = names.CleanLabel(o.SLO)
		all = append(all, slo.Objective(o))
	}
	return all
}
