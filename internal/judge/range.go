// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
)

// Range is a condition on a number: to be at least Min and, if there is a Max, below it.
type Range struct {
	Min float64  `mapstructure:"min"`
	Max *float64 `mapstructure:"max"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// problem returns an error for a range that is wrong. It follows the name of the attribute.
func (r *Range) problem() error {
	switch {
	case !(r.Min >= 0):
		return fmt.Errorf("has `min` %v; use 0 or more", r.Min)
	case r.Max == nil && r.Min == 0:
		return errors.New("has neither `min` nor `max`; set one of them")
	case r.Max != nil && !(r.Min < *r.Max):
		return fmt.Errorf("has `min` %v and `max` %v; use a `max` above `min`", r.Min, *r.Max)
	default:
		return nil
	}
}

func (r *Range) holds(n float64) bool { return n >= r.Min && (r.Max == nil || n < *r.Max) }
