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

// BandedNumber returns the number that SetBands sets a dimension by. ok is false if the dimension is an attribute
// that is read, with or without bands.
func BandedNumber(d *series.Dimension) (id numbers.ID, ok bool) {
	i := slices.IndexFunc(series.Contributing, func(id numbers.ID) bool { return id.Attribute() == d.Attribute })
	if len(d.Bands) == 0 || i < 0 {
		return 0, false
	}
	return series.Contributing[i], true
}

// SetBands sets the dimensions with bands of numbers of a request, which is complete.
func (d *Dimensions) SetBands(r *series.Contribution) {
	for i := range d.numbers {
		of := &d.numbers[i]
		r.Dimensions[of.dimension] = of.bands.Of(r.Value(of.number))
	}
}

// HasBands reports whether SetBands sets a dimension.
func (d *Dimensions) HasBands() bool { return len(d.numbers) > 0 }
