// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package outcome has the rules by which a request is a success, an error, cancelled or incomplete, the
// same for every path: token_tap, token_stream and the readers of spans. docs/definitions.md
// ("Outcomes") has them in words.
package outcome

import (
	"cmp"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Values of error.type for answers that the service itself does not call failed.
const (
	// EmptyAnswer is the type of an answer without a token that nothing explains.
	EmptyAnswer = "empty_answer"
	// UnexpectedAnswer is the type of an answer that is not of the format of its request.
	UnexpectedAnswer = "unexpected_answer"
)

// Facts are what is known of a request that ended.
type Facts struct {
	// Reported is one of names.Outcome* if the sender or the transport reports how the request ended. An
	// error, a cancellation or an incomplete request is believed, a success only if nothing speaks
	// against it.
	Reported string
	// ErrorType is the error.type that the sender or the transport reports.
	ErrorType string
	// Failed means that the status of the request is an error.
	Failed bool
	// Reason is the finish reason with the worst meaning.
	Reason Reason
	// InEngine means that the observer is the engine, which cannot know who aborted a request.
	InEngine bool
	// Token means that a token was seen, or that the observer does not see single tokens.
	Token bool
	// Tokenless means that a complete answer may have no token: the service reports output tokens, or
	// it holds output that is not text, or the request asked for none.
	Tokenless bool
}

// Reason is a finish reason and its meaning.
type Reason struct {
	Name string
	Meaning
}

// Worse returns the worse of two reasons: r, unless the meaning of the named one is worse.
func (r Reason) Worse(name string) Reason {
	if m := MeaningOf(name); r.Name == "" || m > r.Meaning {
		return Reason{Name: name, Meaning: m}
	}
	return r
}

// seenBy returns the outcome that the reason stands for, or "" for an ordinary end.
func (r Reason) seenBy(engine bool) string {
	switch r.Meaning {
	case Failed:
		return names.OutcomeError
	case Aborted:
		if engine {
			return names.OutcomeCancelled
		}
		return names.OutcomeError
	case Cancelled:
		return names.OutcomeCancelled
	case Unfinished:
		return names.OutcomeIncomplete
	default:
		return ""
	}
}

// Of returns the outcome of a request, and the error.type of an error that has one.
func Of(f *Facts) (outcome, errorType string) {
	byReason := f.Reason.seenBy(f.InEngine)
	reported := f.Reported
	if f.Failed && (reported == "" || reported == names.OutcomeSuccess) && f.Reason.Meaning != Cancelled {
		reported = names.OutcomeError
	}
	switch {
	case reported == names.OutcomeError && f.ErrorType == "" && byReason == names.OutcomeError:
		return names.OutcomeError, f.Reason.Name
	case reported == names.OutcomeError:
		return names.OutcomeError, f.ErrorType
	case reported == names.OutcomeCancelled, reported == names.OutcomeIncomplete:
		return reported, ""
	case byReason == names.OutcomeError:
		return names.OutcomeError, f.Reason.Name
	case byReason != "":
		return byReason, ""
	case f.Token, f.Tokenless, f.Reason.Meaning == Filtered:
		return names.OutcomeSuccess, ""
	default:
		return names.OutcomeError, cmp.Or(f.ErrorType, EmptyAnswer)
	}
}
