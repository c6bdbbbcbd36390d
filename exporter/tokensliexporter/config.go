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
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Config of the exporter.
type Config struct {
	// Server is where metrics are scraped.
	Server confighttp.ServerConfig `mapstructure:",squash"`
	// Series decides which requests share a series.
	Series series.SeriesConfig `mapstructure:",squash"`
	// Quantiles are those of the quantile gauges. Without any there are no
	// gauges.
	Quantiles []float64 `mapstructure:"quantiles"`
	// Windows are the recent pasts that the gauges cover. Without any there are
	// no gauges.
	Windows []time.Duration `mapstructure:"windows"`
	// ClassicBuckets replaces the upper bounds of a histogram's classic buckets,
	// by the metric's name without `tokenpulse.`. The native buckets are fixed.
	ClassicBuckets map[string][]float64 `mapstructure:"classic_buckets"`
	// Objectives are those that burn rates and error budgets are shown for.
	Objectives []series.Objective `mapstructure:"objectives"`
	// StorageID is the extension that keeps burn rates and error budgets while the
	// Collector restarts. Without one they begin anew.
	StorageID *component.ID `mapstructure:"storage"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:9464"
	return &Config{
		Server:    server,
		Series:    series.NewDefaultSeriesConfig(),
		Quantiles: []float64{0.5, 0.9, 0.95, 0.99, 0.999},
		Windows:   []time.Duration{time.Minute, 5 * time.Minute, time.Hour},
	}
}

// Bounds of what a user can ask for. Each quantile of each window is a time series
// for every histogram.
const (
	maxQuantiles      = 20
	maxWindows        = 6
	minWindow         = 10 * time.Second
	maxWindow         = 24 * time.Hour
	maxClassicBuckets = 200
)

// Validate names the keys at fault, and the remedies.
func (c *Config) Validate() error {
	var errs []error
	if c.Server.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("`endpoint` is empty: give the address to serve metrics on, such as localhost:9464"))
	}
	_, err := dimensionLabels(c.Series.Dimensions)
	return errors.Join(slices.Concat(errs, []error{err}, c.Series.Problems(), c.validateQuantiles(), c.validateWindows(), c.validateClassicBuckets(), series.ObjectiveProblems(c.Objectives))...)
}

func (c *Config) validateQuantiles() (errs []error) {
	if len(c.Quantiles) > maxQuantiles {
		errs = append(errs, fmt.Errorf("`quantiles` has %d entries: at most %d are possible", len(c.Quantiles), maxQuantiles))
	}
	for i, q := range c.Quantiles {
		if !(q > 0 && q < 1) {
			errs = append(errs, fmt.Errorf("`quantiles` has %v: a quantile lies between 0 and 1, such as 0.99", q))
		}
		if slices.Contains(c.Quantiles[:i], q) {
			errs = append(errs, fmt.Errorf("`quantiles` has %v twice: leave one out", q))
		}
	}
	return errs
}

func (c *Config) validateWindows() (errs []error) {
	if len(c.Windows) > maxWindows {
		errs = append(errs, fmt.Errorf("`windows` has %d entries: at most %d are possible", len(c.Windows), maxWindows))
	}
	for i, w := range c.Windows {
		if w < minWindow || w > maxWindow || w%time.Second != 0 {
			errs = append(errs, fmt.Errorf("`windows` has %v: a window is whole seconds, from %v to %v", w, minWindow, maxWindow))
		}
		if slices.Contains(c.Windows[:i], w) {
			errs = append(errs, fmt.Errorf("`windows` has %v twice: leave one out", w))
		}
	}
	return errs
}

func (c *Config) validateClassicBuckets() (errs []error) {
	var known []string
	for _, h := range series.Histograms {
		known = append(known, strings.TrimPrefix(h.Name, names.Prefix))
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range slices.Sorted(maps.Keys(c.ClassicBuckets)) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("`classic_buckets` has %q, which is no histogram: these are %s", name, strings.Join(known, ", ")))
		}
		if err := validateBounds(c.ClassicBuckets[name]); err != nil {
			errs = append(errs, fmt.Errorf("`classic_buckets::%s` %w", name, err))
		}
	}
	return errs
}

func validateBounds(bounds []float64) error {
	if len(bounds) == 0 {
		return errors.New("is empty: list upper bounds, or leave the key out for the defaults")
	}
	if len(bounds) > maxClassicBuckets {
		return fmt.Errorf("has %d bounds: at most %d are possible", len(bounds), maxClassicBuckets)
	}
	below := 0.0
	for _, bound := range bounds {
		if !(bound > 0) || math.IsInf(bound, 0) {
			return fmt.Errorf("has the bound %v: bounds are over 0 and finite; the bucket of all that is larger is always there", bound)
		}
		if bound <= below {
			return fmt.Errorf("has %v after %v: list bounds in ascending order, each once", bound, below)
		}
		below = bound
	}
	return nil
}

// options is the configuration as the engine wants it.
func (c *Config) options() series.Options {
	bounds := map[string][]float64{}
	for name, b := range c.ClassicBuckets {
		bounds[names.Prefix+name] = b
	}
	return series.Options{Series: c.Series, Windows: c.Windows, Quantiles: c.Quantiles, ClassicBounds: bounds, Objectives: c.Objectives}
}
