// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
		"an empty dimension":        {func(c *Config) { c.Dimensions = []string{"a", ""} }, "`dimensions` entry 2"},
		"only punctuation":          {func(c *Config) { c.Dimensions = []string{"._."} }, "`dimensions` entry 1"},
		"a dimension twice":         {func(c *Config) { c.Dimensions = []string{"a.b", "a.b"} }, "become the same label"},
		"two become the same label": {func(c *Config) { c.Dimensions = []string{"a.b", "a_b"} }, `both "a.b" and "a_b"`},
		"a label of tokenpulse":     {func(c *Config) { c.Dimensions = []string{"outcome"} }, `sets the label "outcome" itself`},
		"the overflow label":        {func(c *Config) { c.Dimensions = []string{"otel_metric_overflow"} }, "itself"},
		"a label of histograms":     {func(c *Config) { c.Dimensions = []string{"le"} }, "itself"},
		"too many dimensions": {func(c *Config) {
			c.Dimensions = nil
			for i := range 33 {
				c.Dimensions = append(c.Dimensions, fmt.Sprint("d", i))
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
