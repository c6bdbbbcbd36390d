package latency

import "github.com/tokenpulse/tokenpulse/internal/names"

// outcome is what became of a request. Why a stream ended early is only known to
// who saw it, so what was told stays; a success has to be seen.
func outcome(r *Request, tokenSeen bool) string {
	switch r.Outcome {
	case names.OutcomeError, names.OutcomeCancelled, names.OutcomeIncomplete:
		return r.Outcome
	}
	if r.Failed || !tokenSeen && !r.TokensUnwatched {
		return names.OutcomeError
	}
	return names.OutcomeSuccess
}
