// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"cmp"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
)

// setOutcome sets the outcome of the request, and why it is an error.
func (d *derivation) setOutcome(tokenSeen bool) {
	r := d.request
	if r.Interrupted && cmp.Or(r.Outcome, names.OutcomeSuccess) == names.OutcomeSuccess {
		r.Outcome = names.OutcomeCancelled
	}
	d.latency.Outcome, d.latency.ErrorType = outcome.Of(&outcome.Facts{
		Reported: r.Outcome, Failed: r.Failed, ErrorType: r.ErrorType, Reason: r.Reason, InEngine: r.InEngine,
		Token: tokenSeen || r.TokensNotObserved, Tokenless: r.Tokenless || r.OutputTokens.Value > 0 || r.AudioTokens.Value > 0 || d.audio.chunks > 0,
	})
}
