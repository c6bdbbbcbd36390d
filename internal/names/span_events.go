// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Span events of a model call, which trace backends draw as ticks.
const (
	FirstTokenEvent = "tokenpulse.first_token"
	// StallEvent also has the duration of the stall, under the key of the number numbers.StallDuration.
	StallEvent     = "tokenpulse.stall"
	LastTokenEvent = "tokenpulse.last_token"
)

// TokenIndex is the attribute of StallEvent that says before which token the stall was.
const TokenIndex = "tokenpulse.token.index"
