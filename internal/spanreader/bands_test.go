// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

func TestRead_DimensionsWithBands(t *testing.T) {
	dimensions := NewDimensions(series.Dimensions{
		{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{1000, 8000}},
		{Attribute: "gen_ai.usage.output_tokens", Bands: []float64{10}},
		{Attribute: "tokenpulse.cached_input.share", Bands: []float64{0.5}},
		{Attribute: "images"},
		{Attribute: "images", Bands: []float64{1, 4}, Label: "image_band"},
	})
	for situation, test := range map[string]struct {
		span, resource map[string]any
		want           []string
	}{
		"nothing known":           {want: []string{"unknown", "unknown", "unknown", "", "unknown"}},
		"below and at a bound":    {map[string]any{"gen_ai.usage.input_tokens": 7999, "gen_ai.usage.output_tokens": 10, "tokenpulse.cached_input.share": 0.5}, nil, []string{"1000-8000", "10+", "0.5+", "", "unknown"}},
		"zero":                    {map[string]any{"gen_ai.usage.input_tokens": 0, "tokenpulse.cached_input.share": 0, "images": 0}, nil, []string{"0-1000", "unknown", "0-0.5", "0", "0-1"}},
		"below zero":              {map[string]any{"gen_ai.usage.input_tokens": -1, "images": -0.5}, nil, []string{"unknown", "unknown", "unknown", "-0.5", "unknown"}},
		"counted tokens":          {map[string]any{"tokenpulse.token_count": 12}, nil, []string{"unknown", "10+", "unknown", "", "unknown"}},
		"reported before counted": {map[string]any{"tokenpulse.token_count": 12, "gen_ai.usage.output_tokens": 9}, nil, []string{"unknown", "0-10", "unknown", "", "unknown"}},
		"of the resource":         {nil, map[string]any{"images": 3}, []string{"unknown", "unknown", "unknown", "3", "1-4"}},
		"of span and resource":    {map[string]any{"images": 4.0}, map[string]any{"images": 3}, []string{"unknown", "unknown", "unknown", "4", "4+"}},
		"a number as text":        {map[string]any{"gen_ai.usage.input_tokens": "8000", "images": "2"}, nil, []string{"8000+", "unknown", "unknown", "2", "1-4"}},
		"text, list and an implausible number": {
			map[string]any{"gen_ai.usage.input_tokens": "many", "gen_ai.usage.output_tokens": 1e10, "images": []any{2}}, nil, []string{"unknown", "unknown", "unknown", "", "unknown"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			span := map[string]any{"tokenpulse.outcome": "success"}
			maps.Copy(span, test.span)
			traces := spans(t, span, map[string]any{"tokenpulse.outcome": "success"})
			require.NoError(t, traces.ResourceSpans().At(0).Resource().Attributes().FromRaw(test.resource))
			var got [][]string
			Read(traces, &Options{Dimensions: dimensions}, time.Now(), func(r *series.Contribution) series.Recorded {
				got = append(got, append([]string{}, r.Dimensions...))
				return series.Recorded{}
			})
			require.Equal(t, test.want, got[0])
			require.Equal(t, "unknown", got[1][0], "of the next span")
		})
	}
}
