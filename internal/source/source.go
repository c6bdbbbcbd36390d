// Package source reads what an instrumentation wrote on a span: when a model call
// began and ended, when its tokens came, and what else it says about them. Each
// instrumentation has a reader of its own, in a file of its own.
package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Observation is what a span says about one model call.
type Observation struct {
	// Reader tells which reader claimed the span: an index into Names.
	Reader int
	// Vantage tells who looked at the clock: one of the values of names.Vantage.
	Vantage string
	Request latency.Request
	// Timeline walks the arrivals of tokens. It is empty where none were seen.
	Timeline timeline.Walk
	// Unusable counts attributes that were left out because their value is not
	// what their name promises. The rest of the span counts.
	Unusable int64
}

// reader reads the spans of one instrumentation.
type reader struct {
	// name is the value of the attribute names.Source.
	name string
	// claims tells a span of this instrumentation from all others. It is called for
	// every span that passes, so it is quick and does not allocate.
	claims func(span ptrace.Span) bool
	// read returns what a claimed span says beside its duration and status, or why
	// it cannot be read.
	read func(span ptrace.Span) (Observation, error)
}

// readers has a line for each instrumentation, the most trustworthy first: the
// first reader that claims a span keeps it.
var readers = []reader{
	tokenStream,
}

// Names returns the value of the attribute names.Source for each reader.
func Names() []string {
	all := make([]string, len(readers))
	for i, r := range readers {
		all[i] = r.name
	}
	return all
}

// Read returns what a span says about a model call. It reports false for a span
// that no reader claims, and an error for a claimed one that cannot be read.
func Read(span ptrace.Span) (o Observation, claimed bool, err error) {
	for i := range readers {
		if !readers[i].claims(span) {
			continue
		}
		o, err = readers[i].read(span)
		o.Reader = i
		o.Request.Duration = duration(span)
		o.Request.Failed = span.Status().Code() == ptrace.StatusCodeError
		return o, true, err
	}
	return o, false, nil
}

// duration is negative for a span that ends before it starts. The difference of
// two timestamps of our age fits; any other pair gives some duration and no panic.
func duration(span ptrace.Span) time.Duration {
	return time.Duration(span.EndTimestamp() - span.StartTimestamp())
}
