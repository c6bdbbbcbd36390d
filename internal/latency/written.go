// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Written returns a number as attributes and series have it: a duration in whole nanoseconds, and no zero of what is
// missing when 0.
func (l *Latency) Written(id numbers.ID) Measure {
	m := l.Number(id)
	switch id {
	case numbers.StallCount, numbers.StallDuration:
		m.Known = m.Known && l.StallCount != 0
	case numbers.ClockAnomalies, numbers.TokenCountMismatch:
		m.Known = m.Value != 0
	}
	if !m.Known {
		return Measure{} // of a duration that was rejected, other parts are still there
	}
	if id.Row().Unit == numbers.Seconds {
		m.Value = ToNanosecond(m.Value)
	}
	return m
}

// ToNanosecond rounds seconds, which are not negative, to the nanosecond. Longer fractions are noise of
// the division, and cost up to 20 characters in JSON. It rounds as math.Round does, but math.Trunc is a
// single instruction.
func ToNanosecond(seconds float64) float64 {
	nanos := float64(seconds * 1e9) // rounded: arm64 would fuse it with the subtraction
	whole := math.Trunc(nanos)
	if nanos-whole >= 0.5 {
		whole++
	}
	return whole / 1e9
}
