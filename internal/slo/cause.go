// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import "github.com/tokenpulse/tokenpulse/internal/names"

// Cause is the cause of a failed request. It indexes names.FailureCauses.
type Cause uint8

// The causes.
const (
	ClientMistake Cause = iota
	RateLimit
	ServerError
	OtherCause
)

// CauseOf returns the cause of a request with an outcome and the HTTP status of its answer, 0 if that is
// unknown. failed is false if the request did not fail.
func CauseOf(outcome string, status int) (cause Cause, failed bool) {
	failed = outcome == names.OutcomeError || outcome == names.OutcomeIncomplete
	switch {
	case IsClientMistake(outcome, status):
		return ClientMistake, failed
	case status == 429:
		return RateLimit, failed
	case status >= 500:
		return ServerError, failed
	default:
		return OtherCause, failed
	}
}

// IsClientMistake reports whether a request failed because its client sent a wrong request or key.
func IsClientMistake(outcome string, status int) bool {
	switch status {
	case 400, 401, 403, 404, 405, 413, 415, 422:
		return outcome == names.OutcomeError
	default:
		return false
	}
}
