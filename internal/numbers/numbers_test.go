// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package numbers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

func TestTable_EachNumberHasAnAttributeOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for id := range numbers.Count {
		row := id.Row()
		require.Equal(t, id, row.ID)
		require.NotEmpty(t, row.Attribute, "row %d", id)
		require.False(t, seen[row.Attribute], "%s has two rows", row.Attribute)
		seen[row.Attribute] = true
		require.False(t, row.Judged && row.Instead != "", "%s is judged, and another one instead of it", row.Attribute)
		if row.Judged || row.Instead != "" {
			require.True(t, strings.HasPrefix(row.Attribute, names.Prefix), "%s cannot be named in an SLO", row.Attribute)
		}
	}
}

func TestTable_EachMetricIsAHistogramOrASum(t *testing.T) {
	for id := range numbers.Count {
		row := id.Row()
		histogram, sum := slices.Contains(numbers.Histograms, id), slices.Contains(numbers.Sums[:], id)
		require.Equal(t, row.Metric.Name != "", histogram != sum, row.Attribute)
		require.Equal(t, histogram, row.Bounds != nil, row.Attribute)
	}
}

func TestTable_AtMost14ClassicBoundsAscendFromOneMillisecond(t *testing.T) {
	for _, id := range numbers.Histograms {
		bounds := id.Row().Bounds
		require.LessOrEqual(t, len(bounds), 14, id.Name())
		require.True(t, slices.IsSorted(bounds), id.Name())
		require.Len(t, slices.Compact(slices.Clone(bounds)), len(bounds), id.Name())
		if id.Row().Metric.Unit == numbers.Seconds {
			require.Equal(t, 0.001, bounds[0], id.Name())
		}
	}
}
