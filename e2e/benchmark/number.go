// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
)

// median returns the middle value, or the mean of the two middle values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

func spread(values []float64) string {
	return number(slices.Min(values)) + " .. " + number(slices.Max(values))
}

// number formats a number with about three significant digits.
func number(value float64) string {
	switch magnitude := math.Abs(value); {
	case magnitude < 10:
		return fmt.Sprintf("%.2f", value)
	case magnitude < 100:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.0f", value)
	}
}
