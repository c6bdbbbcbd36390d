// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBands_ABoundBelongsToTheBandAboveIt(t *testing.T) {
	lengths, shares := NewBands([]float64{1000, 8000, 32000}), NewBands([]float64{0.1, 0.5})
	for _, test := range []struct {
		bands *Bands
		n     float64
		want  string
	}{
		{lengths, 0, "0-1000"},
		{lengths, 999, "0-1000"},
		{lengths, 999.999, "0-1000"},
		{lengths, 1000, "1000-8000"},
		{lengths, 7999, "1000-8000"},
		{lengths, 8000, "8000-32000"},
		{lengths, 31999, "8000-32000"},
		{lengths, 32000, "32000+"},
		{lengths, 1e300, "32000+"},
		{lengths, -1, "unknown"},
		{lengths, math.NaN(), "unknown"},
		{lengths, math.Inf(1), "unknown"},
		{lengths, math.Inf(-1), "unknown"},
		{shares, 0, "0-0.1"},
		{shares, math.Nextafter(0.1, 0), "0-0.1"},
		{shares, 0.1, "0.1-0.5"},
		{shares, 0.5, "0.5+"},
		{shares, 1, "0.5+"},
		{NewBands([]float64{1e-6, 1e12}), 1, "0.000001-1000000000000"},
	} {
		require.Equal(t, test.want, test.bands.Of(test.n, true), test.n)
		require.Equal(t, "unknown", test.bands.Of(test.n, false), "a number that is missing")
	}
	require.Nil(t, NewBands(nil))
}

func TestDimensions_NameOfBandsIsTheirLabel(t *testing.T) {
	dimensions := Dimensions{
		{Attribute: "service.name"},
		{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{1000, 8000}, Label: "prompt_tokens"},
		{Attribute: "tokenpulse.cached_input.share", Bands: []float64{0.5}},
	}
	require.Equal(t, []string{"service.name", "prompt_tokens", "tokenpulse_cached_input_share"}, dimensions.Names())
	require.Equal(t, []string{"service.name", "gen_ai.usage.input_tokens", "tokenpulse.cached_input.share"}, dimensions.Attributes())
	before := dimensions.Identities()
	require.Equal(t, "service.name", before[0], "as in storages of releases without bands")
	dimensions[1].Label = "prompt"
	require.Equal(t, before, dimensions.Identities(), "values do not depend on the label")
	dimensions[1].Bands = []float64{1000, 9000}
	require.NotEqual(t, before, dimensions.Identities())
}

func TestUnusedDimensions_BandsOfUnknownNumbersAreUnused(t *testing.T) {
	e := NewEngine(Options{Config: Config{MaxSeries: 10, Dimensions: Dimensions{{Attribute: "a"}, {Attribute: "b", Bands: []float64{1}}}}})
	e.Record(&Contribution{Dimensions: []string{"unknown", "unknown"}, Arrival: time.Now()})
	unused, _ := e.UnusedDimensions()
	require.Equal(t, []int{1}, unused, "of a dimension without bands, it is a value")
	e.Record(&Contribution{Dimensions: []string{"x", "1+"}, Arrival: time.Now()})
	unused, _ = e.UnusedDimensions()
	require.Empty(t, unused)
}
