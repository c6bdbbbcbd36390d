// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "github.com/tokenpulse/tokenpulse/internal/names"

// Outcome returns how the stream ended: success, error, cancelled or, without an end, incomplete.
func (f Finished) Outcome() string {
	if f.End == nil {
		return names.OutcomeIncomplete
	}
	return outcome(f.End.Error != "", f.End.Cancelled)
}

// Outcome returns how the stream ended, as that of Finished does.
func (e *WholeEnd) Outcome() string { return outcome(e.Failed, e.Cancelled) }

func outcome(failed, cancelled bool) string {
	switch {
	case failed:
		return names.OutcomeError
	case cancelled:
		return names.OutcomeCancelled
	default:
		return names.OutcomeSuccess
	}
}
