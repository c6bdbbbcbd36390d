// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import "github.com/tokenpulse/tokenpulse/internal/names"

// outcome returns the outcome of a request. A reported error, cancellation or
// incomplete stream is kept: only the sender knows why a stream ended early. Success
// requires a token, unless the instrumentation does not observe tokens.
func outcome(r *Observed, tokenSeen bool) string {
	switch r.Outcome {
	case names.OutcomeError, names.OutcomeCancelled, names.OutcomeIncomplete:
		return r.Outcome
	}
	if r.Failed || !tokenSeen && !r.TokensNotObserved {
		return names.OutcomeError
	}
	return names.OutcomeSuccess
}
