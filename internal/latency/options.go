// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Options are the choices that definitions.md leaves to the user.
type Options struct {
	// StallThreshold is the longest gap between two chunks that is not a stall.
	StallThreshold time.Duration
	// Denominator is the divisor of TimePerOutputToken.
	Denominator Denominator
	// Fluidity holds the deadlines of FluidityIndex. The zero value turns it off.
	Fluidity Deadlines
	// Moments adds Latency.Moments.
	Moments bool
	// Omitted are the numbers that are left out. Without percentiles of the gaps a request costs as
	// much less as a hundred tokens cost.
	Omitted [numbers.Count]bool
}

// percentiles reports whether any percentile of the gaps is wanted.
func (o *Options) percentiles() bool {
	return slices.ContainsFunc(numbers.GapPercentiles[:], func(id numbers.ID) bool { return !o.Omitted[id] })
}

// positions reports whether the time per token is wanted at any position.
func (o *Options) positions() bool {
	return slices.Contains(o.Omitted[numbers.TimePerTokenFrom0:numbers.TimePerTokenFrom1000+1], false)
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
