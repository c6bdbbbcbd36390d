package slo

import "github.com/tokenpulse/tokenpulse/internal/names"

// Verdict is the result of judging one request by one SLO. Of several verdicts, the largest counts.
type Verdict uint8

// The verdicts of definitions.md.
const (
	NotEligible Verdict = iota
	Good
	Bad
	Verdicts // how many there are
)

// String returns the value of the label names.LabelVerdict.
func (v Verdict) String() string {
	return [Verdicts]string{names.VerdictNotEligible, names.VerdictGood, names.VerdictBad}[v]
}
