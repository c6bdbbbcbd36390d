// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"
	"slices"
	"strconv"
)

// UnknownBand is the label of a missing number, of one below 0, and of a value that is no number.
const UnknownBand = "unknown"

// Bounds of bands are in this range, so that labels are short.
const (
	smallestBound = 1e-6
	largestBound  = 1e12
)

// Bands divide the numbers from 0 on into ranges, each with a label.
type Bands struct {
	bounds []float64
	labels []string
}

// NewBands returns the bands between ascending bounds, or nil without bounds. A bound belongs to the band
// above it: 1000 and 8000 give `0-1000` below 1000, `1000-8000` below 8000, and `8000+`.
func NewBands(bounds []float64) *Bands {
	if len(bounds) == 0 {
		return nil
	}
	b, from := &Bands{bounds: bounds}, "0"
	for _, bound := range bounds {
		to := decimal(bound)
		b.labels = append(b.labels, from+"-"+to)
		from = to
	}
	b.labels = append(b.labels, from+"+")
	return b
}

// decimal writes a number without an exponent, and as short as it stays exact.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Of returns the label of the band that a number lies in, or UnknownBand.
func (b *Bands) Of(n float64, known bool) string {
	if !known || !(n >= 0) || math.IsInf(n, 1) {
		return UnknownBand
	}
	i, atBound := slices.BinarySearch(b.bounds, n)
	if atBound {
		i++
	}
	return b.labels[i]
}

// Index returns the place of a label among the bands, in ascending order. ok is false for any other label,
// whose place is behind the last band.
func (b *Bands) Index(label string) (i int, ok bool) {
	if i = slices.Index(b.labels, label); i < 0 {
		return len(b.labels), false
	}
	return i, true
}
