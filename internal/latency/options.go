// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import "time"

// Options are the choices that definitions.md leaves to the user.
type Options struct {
	// StallThreshold is the longest gap between two chunks that is not a stall.
	StallThreshold time.Duration
	// Denominator is the divisor of TimePerOutputToken.
	Denominator Denominator
	// Fluidity holds the deadlines of FluidityIndex. The zero value turns it off.
	Fluidity Deadlines
	// NoPercentiles leaves out the percentiles of the gaps, which cost as much as a
	// hundred tokens. Mean and Max are always derived.
	NoPercentiles bool
}

// Denominator is the number of tokens that TimePerOutputToken divides by.
type Denominator uint8

const (
	// AllButFirst is N - 1, the common definition.
	AllButFirst Denominator = iota
	// AfterFirstChunk is N - n1: it leaves out all tokens of the first chunk. It falls
	// back to N - 1 if n1 is unknown or not below N.
	AfterFirstChunk
)
