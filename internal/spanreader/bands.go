// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// bandsOfNumber is a dimension with bands of a number of the request.
type bandsOfNumber struct {
	dimension int
	number    numbers.ID
	bands     *series.Bands
}

// BandedNumber returns the number that a Builder sets a dimension by. ok is false if the dimension is an attribute
// that is read, with or without bands.
func BandedNumber(d *series.Dimension) (id numbers.ID, ok bool) {
	i := slices.IndexFunc(series.Contributing, func(id numbers.ID) bool { return id.Attribute() == d.Attribute })
	if len(d.Bands) == 0 || i < 0 {
		return 0, false
	}
	return series.Contributing[i], true
}

// setBands sets the dimensions with bands of numbers.
func (b *Builder) setBands() {
	for i := range b.bands {
		of := &b.bands[i]
		b.Request.Dimensions[of.dimension] = of.bands.Of(b.number(of.number))
	}
}

// number returns a number of the request as its series count it, derived ones included.
func (b *Builder) number(id numbers.ID) (n float64, known bool) {
	switch {
	case id < numbers.Singles:
		return b.Request.Value(id)
	case slices.Contains(numbers.Sums[:], id):
		return b.Request.Sum(id)
	default:
		return b.Measures[id].Value, b.Measures[id].Known
	}
}
