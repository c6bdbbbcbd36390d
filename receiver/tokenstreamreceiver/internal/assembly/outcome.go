// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Outcome returns how the stream ended: success, error, cancelled or, without an end, incomplete. An
// error that the stream itself does not report has an error.type.
func (f Finished) Outcome() (result, errorType string) {
	if f.End == nil {
		return names.OutcomeIncomplete, ""
	}
	return outcome.Of(&outcome.Facts{
		Reported:  reported(f.End.Error != "", f.End.Cancelled || f.End.Interrupted),
		Reason:    f.End.Reason(),
		InEngine:  f.Start.Vantage == timeline.VantageEngine,
		Token:     f.arrived() > 0,
		Tokenless: f.End.Usage.Output.Value > 0,
	})
}

// Interrupted reports whether the user interrupted the answer.
func (f *Finished) Interrupted() bool { return f.End != nil && f.End.Interrupted }

// Reason returns the finish reason of the end, and its meaning.
func (e *End) Reason() outcome.Reason {
	return outcome.Reason{}.Worse(e.FinishReason)
}

func reported(failed, cancelled bool) string {
	switch {
	case failed:
		return names.OutcomeError
	case cancelled:
		return names.OutcomeCancelled
	default:
		return names.OutcomeSuccess
	}
}
