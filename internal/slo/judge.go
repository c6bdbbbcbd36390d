// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import "github.com/tokenpulse/tokenpulse/internal/names"

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

// JudgeOutcome returns the verdict of an objective on availability. A client that goes away
// says nothing about the service.
func JudgeOutcome(outcome string) Verdict {
	switch outcome {
	case names.OutcomeSuccess:
		return Good
	case names.OutcomeCancelled:
		return NotEligible
	default:
		return Bad
	}
}
