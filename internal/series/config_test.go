// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func withBands(dimensions ...Dimension) func(*Config) {
	return func(c *Config) { c.Dimensions = dimensions }
}

func TestConfigProblems_NameKeyAndRemedy(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string // empty: valid
	}{
		"defaults":                  {func(*Config) {}, ""},
		"no dimensions":             {func(c *Config) { c.Dimensions = nil }, ""},
		"no expiration":             {func(c *Config) { c.SeriesExpiration = 0 }, ""},
		"no series":                 {func(c *Config) { c.MaxSeries = 0 }, "`max_series` is 0"},
		"expiration too short":      {func(c *Config) { c.SeriesExpiration = time.Millisecond }, "`series_expiration` is 1ms"},
		"negative expiration":       {func(c *Config) { c.SeriesExpiration = -time.Hour }, "`series_expiration` is -1h0m0s"},
		"an empty dimension":        {func(c *Config) { c.Dimensions = DimensionsOf("a", "") }, "`dimensions` entry 2"},
		"only punctuation":          {func(c *Config) { c.Dimensions = DimensionsOf("._.") }, "`dimensions` entry 1"},
		"a dimension twice":         {func(c *Config) { c.Dimensions = DimensionsOf("a.b", "a.b") }, "become the same label"},
		"two become the same label": {func(c *Config) { c.Dimensions = DimensionsOf("a.b", "a_b") }, `both "a.b" and "a_b"`},
		"a label of tokenpulse":     {func(c *Config) { c.Dimensions = DimensionsOf("outcome") }, `sets the label "outcome" itself`},
		"the overflow label":        {func(c *Config) { c.Dimensions = DimensionsOf("otel_metric_overflow") }, "itself"},
		"a label of histograms":     {func(c *Config) { c.Dimensions = DimensionsOf("le") }, "itself"},
		"bands": {func(c *Config) {
			c.Dimensions = Dimensions{{Attribute: "a.b", Bands: []float64{0.5, 1000}, Label: "x"}, {Attribute: "a.b", Bands: []float64{1}}}
		}, ""},
		"bands of no attribute": {withBands(Dimension{Bands: []float64{1}}), "`dimensions` entry 1 is \"\"; enter the name of an attribute"},
		"bounds that descend":   {withBands(Dimension{Attribute: "a", Bands: []float64{8, 1}}), "`dimensions::0::bands` has 1 after 8; list bounds in ascending order"},
		"a bound twice":         {withBands(Dimension{Attribute: "a", Bands: []float64{1, 1}}), "has 1 after 1"},
		"a bound of 0":          {withBands(Dimension{Attribute: "a", Bands: []float64{0, 1}}), "`dimensions::0::bands` has 0; use numbers from 0.000001 to 1000000000000"},
		"a negative bound":      {withBands(Dimension{Attribute: "a", Bands: []float64{-1}}), "has -1; use numbers from"},
		"an infinite bound":     {withBands(Dimension{Attribute: "a", Bands: []float64{math.Inf(1)}}), "has +Inf; use numbers from"},
		"a bound that is NaN":   {withBands(Dimension{Attribute: "a", Bands: []float64{math.NaN()}}), "has NaN; use numbers from"},
		"eleven bounds":         {withBands(Dimension{Attribute: "a", Bands: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}), "has 11 bounds; the maximum is 10"},
		"a label without bands": {withBands(Dimension{Attribute: "a", Label: "b"}), "`dimensions::0::bands` is missing, and only bands have a `label`"},
		"bands and an attribute with their label": {
			withBands(Dimension{Attribute: "a_b"}, Dimension{Attribute: "a.b", Bands: []float64{1}}),
			"`dimensions` has both \"a_b\" and \"a_b\", which become the same label; set another `label` for the bands",
		},
		"two bands with a label": {
			withBands(Dimension{Attribute: "a", Bands: []float64{1}, Label: "x"}, Dimension{Attribute: "b", Bands: []float64{1}, Label: "x"}),
			"`dimensions` has both \"x\" and \"x\"",
		},
		"bands with a label of tokenpulse": {
			withBands(Dimension{Attribute: "a", Bands: []float64{1}, Label: "le"}), "sets the label \"le\" itself; set another `label` for the bands",
		},
		"too many dimensions": {func(c *Config) {
			c.Dimensions = nil
			for i := range 33 {
				c.Dimensions = append(c.Dimensions, Dimension{Attribute: fmt.Sprint("d", i)})
			}
		}, "has 33 entries"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewDefaultConfig()
			test.change(&c)
			err := errors.Join(c.Problems()...)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}
