package series

import "github.com/tokenpulse/tokenpulse/internal/names"

// Verdict tells what a service level objective says of one request. Where several
// hold, the largest counts.
type Verdict uint8

// The verdicts of definitions.md.
const (
	NotEligible Verdict = iota
	Good
	Bad

	verdictKinds
)

// VerdictNames holds the name of each Verdict.
var VerdictNames = [verdictKinds]string{names.VerdictNotEligible, names.VerdictGood, names.VerdictBad}

// MaxSLOs is the most objectives that one request, and one series, has verdicts
// of.
const MaxSLOs = 64

// Verdicts are those of the objectives that apply to one request. The zero value
// has none.
type Verdicts struct {
	each []namedVerdict // no name twice
	// overall is the largest of all, also of those that each has no place for.
	overall Verdict
	apply   bool
	dropped int
}

type namedVerdict struct {
	slo     string
	verdict Verdict
}

// Add gives the verdict of an objective. The name is made a label value, and is
// not empty. A verdict too many, or of the name that stands for all objectives,
// is dropped: it counts for all objectives together, and has no count of its own.
func (vs *Verdicts) Add(slo string, verdict Verdict) {
	vs.overall = max(vs.overall, verdict)
	vs.apply = true
	slo = clean(slo)
	for i := range vs.each {
		if known := &vs.each[i]; known.slo == slo {
			known.verdict = max(known.verdict, verdict)
			return
		}
	}
	if slo == names.SLOAll || len(vs.each) >= MaxSLOs {
		vs.dropped++
		return
	}
	vs.each = append(vs.each, namedVerdict{slo, verdict})
}

// Drop counts verdicts that nobody looked at.
func (vs *Verdicts) Drop(n int) { vs.dropped += n }

// Reset takes all verdicts away, and keeps the memory.
func (vs *Verdicts) Reset() {
	clear(vs.each) // holds on to no text of a span that is gone
	*vs = Verdicts{each: vs.each[:0]}
}
