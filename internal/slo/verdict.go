// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import "github.com/tokenpulse/tokenpulse/internal/names"

// Verdict is the result of judging one request by one service level objective.
// Where several verdicts apply, the largest wins.
type Verdict uint8

// The verdicts, as docs/definitions.md defines them.
const (
	NotEligible Verdict = iota
	Good
	Bad
	Verdicts // number of verdicts
)

// String returns the value of the metric label `verdict`.
func (v Verdict) String() string {
	return [Verdicts]string{names.VerdictNotEligible, names.VerdictGood, names.VerdictBad}[v]
}
