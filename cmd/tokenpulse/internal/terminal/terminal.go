// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"math"
	"strconv"
)

// Duration formats a duration with three significant digits, in the fitting unit. NaN is
// unknown.
func Duration(s float64) string {
	switch {
	case math.IsNaN(s):
		return "-"
	case s < 999.5e-6:
		return digits(s*1e6) + "µs"
	case s < 999.5e-3:
		return digits(s*1e3) + "ms"
	default:
		return digits(s) + "s"
	}
}

func digits(v float64) string {
	if v >= 99.95 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Name formats the value of a label.
func Name(label string) string {
	if label == "" {
		return "-"
	}
	return Printable(label)
}
