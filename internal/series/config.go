// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config decides which requests share a series, and limits the number of series.
type Config struct {
	// Dimensions are the attributes whose values distinguish series. Each is looked up
	// on the span, then on its resource.
	Dimensions []string `mapstructure:"dimensions"`
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
		Dimensions:       []string{names.ServiceName, names.GenAIProviderName, names.GenAIRequestModel, names.GenAIOperationName},
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
	errs := validateDimensions(c.Dimensions)
	errs.Unless(c.MaxSeries > 0, "`max_series` is %d; use at least 1; requests of further series go to the overflow series", c.MaxSeries)
	errs.Unless(c.SeriesExpiration == 0 || c.SeriesExpiration >= time.Second,
		"`series_expiration` is %v; use at least 1s, or 0 to keep series forever", c.SeriesExpiration)
	return errs
}

// maxDimensions limits the labels of a series.
const maxDimensions = 32

// ourLabels are the labels that metrics have besides the dimensions. Prometheus reserves
// `le` for histograms and `quantile` for summaries.
var ourLabels = []string{
	names.LabelVantage, names.LabelOutcome, names.LabelPhase, names.LabelType,
	names.LabelPercentile, names.LabelWindow, names.LabelSLO, names.LabelVerdict,
	names.LabelIndicator, names.LabelReason, names.LabelCause, names.LabelSilent,
	names.LabelOverflow, "le", "quantile",
}

func validateDimensions(dimensions []string) (errs settings.Problems) {
	errs.Unless(len(dimensions) <= maxDimensions, "`dimensions` has %d entries; the maximum is %d", len(dimensions), maxDimensions)
	labels := map[string]string{}
	for _, own := range ourLabels {
		labels[normalized(own)] = own
	}
	for i, dimension := range dimensions {
		label := normalized(dimension)
		switch taken, ok := labels[label]; {
		case strings.Trim(label, "_") == "":
			errs = append(errs, fmt.Errorf("`dimensions` entry %d is %q; enter the name of an attribute, such as %s", i+1, dimension, names.GenAIRequestModel))
		case ok && slices.Contains(ourLabels, taken):
			errs = append(errs, fmt.Errorf("`dimensions` has %q, but tokenpulse sets the label %q itself; remove it", dimension, taken))
		case ok:
			errs = append(errs, fmt.Errorf("`dimensions` has both %q and %q, which become the same label; remove one", taken, dimension))
		default:
			labels[label] = dimension
		}
	}
	return errs
}

// normalized reduces a name to ASCII letters, digits and single underscores. Names that
// are equal afterwards become the same label in Prometheus.
func normalized(name string) string {
	parts := strings.FieldsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
	return strings.Join(parts, "_")
}
