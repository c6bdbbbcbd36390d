// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

// Definition is the indicator and threshold of an SLO.
type Definition struct {
	Name string
	// Indicator is an attribute without the prefix "tokenpulse.", such as time_to_first_token.
	Indicator string
	// Threshold is the largest good value, in the unit of the indicator. It is 0 if the indicator is
	// the outcome, which has no threshold.
	Threshold float64
}
