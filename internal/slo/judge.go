// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

// Judge returns the verdict on a request that the objective applies to. measured is
// false when the request lacks the indicator: an aborted request is then Bad,
// because an aborted stream is not a fast one, and a successful one, such as a
// one-token answer without a time per output token, is NotEligible.
func Judge(value, threshold float64, measured, succeeded bool) Verdict {
	switch {
	case measured && value <= threshold:
		return Good
	case measured || !succeeded:
		return Bad
	default:
		return NotEligible
	}
}
