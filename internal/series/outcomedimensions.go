// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// OutcomeDimensions are the indexes of the dimensions whose values only the outcome of a request decides:
// its error.type and its finish reasons. The counters of verdicts, and error budgets, leave them out. The
// share of bad requests is that among requests which were alike before they ended, and a counter that
// begins with the first error of its kind hides that error from Prometheus.
type OutcomeDimensions []int

// OfOutcome returns the indexes of the dimensions whose values only the outcome decides.
func (d Dimensions) OfOutcome() (indexes OutcomeDimensions) {
	for i := range d {
		if names.IsCategory(d[i].Attribute) && len(d[i].Bands) == 0 {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// Any reports whether one of the dimensions has a value.
func (o OutcomeDimensions) Any(values []string) bool {
	for _, i := range o {
		if values[i] != "" {
			return true
		}
	}
	return false
}

// AppendKey appends the key of the series with the labels, without the values of the dimensions.
func (o OutcomeDimensions) AppendKey(key []byte, values []string, vantage string) []byte {
	left := o // the indexes are in ascending order
	for i, v := range values {
		if len(left) > 0 && left[0] == i {
			v, left = "", left[1:]
		}
		key = protowire.AppendString(key, v)
	}
	return protowire.AppendString(key, vantage)
}

// AppendKeyOf appends the key of the series that an increment adds to: verdicts have no values of the dimensions.
func (o OutcomeDimensions) AppendKeyOf(key []byte, i *Increment) []byte {
	if i.Part == PartVerdicts && !i.Overflow {
		return o.AppendKey(key, i.Dimensions, i.Vantage)
	}
	return i.AppendKey(key)
}
