// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config of the exporter.
type Config struct {
	// Server serves the metrics.
	Server confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are further values of the header Host of requests to a loopback address.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// MaxSharePerClient is the fraction of the scrapes, of the event streams of the page and of the requests of its
	// API that one client may hold while less than half of all are free.
	MaxSharePerClient float64 `mapstructure:"max_share_per_client"`
	// Shared holds the settings that the token_sli connector has, too.
	Shared keeper.Config `mapstructure:",squash"`
	// Percentiles are those of the percentile gauges, between 0 and 100. Empty turns the
	// gauges off.
	Percentiles []float64 `mapstructure:"percentiles" use:"a number, such as 99"`
	// Windows are the sliding windows of the percentile gauges. Empty turns the gauges off.
	Windows []time.Duration `mapstructure:"windows"`
	// ZeroFor is how long Prometheus sees a new counter at 0, so that it notices the first increase. It has to be
	// at least a scrape interval. 0 shows the value at once.
	ZeroFor time.Duration `mapstructure:"zero_for"`
	// ClassicBuckets replaces the upper bounds of a histogram's classic buckets, by metric
	// name without `tokenpulse.`. The native buckets are fixed.
	ClassicBuckets map[string][]float64 `mapstructure:"classic_buckets"`
	// Compare are pairs of values of a dimension, such as two versions, that get a verdict.
	Compare []compare.Question `mapstructure:"compare"`
	// Capacity asks for the load at which replicas meet objectives.
	Capacity []CapacityConfig `mapstructure:"capacity"`
	// Page is the live page and its API.
	Page PageConfig `mapstructure:"page"`
	// History limits the past that the page shows.
	History HistoryConfig `mapstructure:"history"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// PageConfig configures the live page.
type PageConfig struct {
	// Enabled is false to serve metrics only. Then there is no history either.
	Enabled bool `mapstructure:"enabled"`
	// TraceLink is the address of a trace, with `{trace_id}` and perhaps `{span_id}` to be
	// filled in. Empty means no links.
	TraceLink string `mapstructure:"trace_link"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// HistoryConfig configures the history of the page.
type HistoryConfig struct {
	// MaxMemoryMiB limits its memory. At the limit the history coarsens.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal decodes the settings.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:9464"
	return &Config{
		Server:      server,
		Shared:      keeper.NewDefaultConfig(),
		Percentiles: []float64{50, 95, 99},
		Windows:     []time.Duration{5 * time.Minute},
		ZeroFor:     30 * time.Second,
		Page:        PageConfig{Enabled: true},

		MaxSharePerClient: httpguard.DefaultShare,
		History:           HistoryConfig{MaxMemoryMiB: 64},
	}
}

// Limits of the configuration. Every percentile of every window is a time series of each
// histogram.
const (
	maxPercentiles    = 20
	maxWindows        = 6
	minWindow         = 10 * time.Second
	maxWindow         = 72 * time.Hour
	maxClassicBuckets = 200
	maxZeroFor        = 10 * time.Minute
)

// Validate returns an error for each invalid key. The Collector validates all exporters of its configuration, those
// without a pipeline, too, before it creates those of the pipelines. So a valid one is reported as idle unless it is created.
func (c *Config) Validate() error {
	err := errors.Join(c.problems()...)
	if err == nil {
		inprocess.IdleExporters.Set(c, c.Server.NetAddr.Endpoint)
	}
	return err
}

func (c *Config) problems() settings.Problems {
	var errs settings.Problems
	errs.Unless(c.Server.NetAddr.Endpoint != "", "`endpoint` is empty; enter the address to serve metrics on, such as localhost:9464")
	errs.Unless(0 <= c.ZeroFor && c.ZeroFor <= maxZeroFor,
		"`zero_for` is %v; use at least the scrape interval of Prometheus, up to %v, or 0 to show new counters at once", c.ZeroFor, maxZeroFor)
	_, err := dimensionLabels(c.Shared.Series.Dimensions.Names())
	return slices.Concat(errs, httpguard.ShareProblems(c.MaxSharePerClient), settings.Problems{err}, c.Shared.Problems(), c.validatePercentiles(), c.validateWindows(), c.validateClassicBuckets(), c.validateCompare(), capacityProblems(c.Capacity), c.validatePage())
}

func (c *Config) validatePercentiles() (errs settings.Problems) {
	errs.Unless(len(c.Percentiles) <= maxPercentiles, "`percentiles` has %d entries; the maximum is %d", len(c.Percentiles), maxPercentiles)
	for i, p := range c.Percentiles {
		errs.Unless(p >= 1 && p < 100, "`percentiles` has %v; use 1 to below 100, such as 99 or 99.9", p)
		errs.Unless(!slices.Contains(c.Percentiles[:i], p), "`percentiles` has %v twice; remove one", p)
	}
	return errs
}

func (c *Config) validateWindows() (errs settings.Problems) {
	errs.Unless(len(c.Windows) <= maxWindows, "`windows` has %d entries; the maximum is %d", len(c.Windows), maxWindows)
	for i, w := range c.Windows {
		errs.Unless(minWindow <= w && w <= maxWindow && w%time.Second == 0,
			"`windows` has %v; use whole seconds from %v to %v", w, minWindow, maxWindow)
		errs.Unless(!slices.Contains(c.Windows[:i], w), "`windows` has %v twice; remove one", w)
	}
	return errs
}

func (c *Config) validateClassicBuckets() (errs settings.Problems) {
	var known []string
	for _, id := range numbers.Histograms {
		known = append(known, strings.TrimPrefix(id.Row().Metric.Name, names.Prefix))
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

// questions returns the pairs with the defaults set.
func (c *Config) questions() []compare.Question {
	questions := slices.Clone(c.Compare)
	for i := range questions {
		questions[i].SetDefaults()
	}
	return questions
}

func (c *Config) validateCompare() (errs settings.Problems) {
	errs.Unless(len(c.Compare) <= compare.MaxPairs, "`compare` has %d pairs; the maximum is %d", len(c.Compare), compare.MaxPairs)
	questions := c.questions()
	for i := range questions {
		for _, m := range questions[i].Mistakes(c.Shared.Series.Dimensions.Names()) {
			errs = append(errs, fmt.Errorf("`compare::%d::%s` %s; %s", i, m.Key, m.Message, m.Remedy))
		}
		errs.Unless(!slices.ContainsFunc(questions[:i], func(q compare.Question) bool { return q.Pair == questions[i].Pair }),
			"`compare::%d` has the pair of an entry before; remove one", i)
	}
	return errs
}

// maxHistoryMiB limits the memory of the history: queries read all of it.
const maxHistoryMiB = 1024

func (c *Config) validatePage() (errs settings.Problems) {
	errs.Unless(1 <= c.History.MaxMemoryMiB && c.History.MaxMemoryMiB <= maxHistoryMiB,
		"`history::max_memory_mib` is %d; use 1 to %d, or turn the history off with `page::enabled: false`", c.History.MaxMemoryMiB, maxHistoryMiB)
	link, err := url.Parse(strings.NewReplacer("{trace_id}", "0", "{span_id}", "0").Replace(c.Page.TraceLink))
	valid := err == nil && (link.Scheme == "http" || link.Scheme == "https") && link.Host != "" && strings.Contains(c.Page.TraceLink, "{trace_id}")
	errs.Unless(c.Page.TraceLink == "" || valid,
		"`page::trace_link` is %q; use an http or https address with {trace_id}, such as http://localhost:16686/trace/{trace_id}", c.Page.TraceLink)
	return errs
}

func validateBounds(bounds []float64) error {
	if len(bounds) == 0 {
		return errors.New("is empty; list upper bounds, or remove the key to use the defaults")
	}
	if len(bounds) > maxClassicBuckets {
		return fmt.Errorf("has %d bounds; the maximum is %d", len(bounds), maxClassicBuckets)
	}
	below := 0.0
	for _, bound := range bounds {
		if !(bound > 0) || math.IsInf(bound, 0) {
			return fmt.Errorf("has the bound %v; use finite bounds above 0: the +Inf bucket is always present", bound)
		}
		if bound <= below {
			return fmt.Errorf("has %v after %v; list bounds in ascending order, without duplicates", bound, below)
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
	o.Windows, o.ClassicBounds = c.Windows, bounds
	for _, p := range c.Percentiles {
		o.Quantiles = append(o.Quantiles, p/100)
	}
	return o
}
