// Package source reads what an instrumentation wrote on a span: when a model call
// began and ended, when its tokens came, and what else it says about them. Each
// instrumentation has a reader of its own, in a file of its own: to add one is to
// add its file and its line in the table of readers.
package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// readers has a line for each instrumentation. No two of them claim the same
// span, but for the last two, which take what is left: any model call in the
// words of the conventions.
var readers = []reader{
	tokenStream,
	vllm,
	sglang,
	tensorRTLLM,
	tgi,
	dynamo,
	llmD,
	envoyAIGateway,
	liteLLM,
	vercelAI,
	langSmith,
	langfuse,
	mastra,
	openInference,
	openLIT,
	openLLMetry,
	spanEvents,
	semconv,
}

// Names returns the value of the attribute names.Source for each reader.
func Names() []string {
	all := make([]string, len(readers))
	for i, r := range readers {
		all[i] = r.name
	}
	return all
}

// Observation is what a span says about one model call.
type Observation struct {
	// Reader tells which reader claimed the span: an index into Names.
	Reader int
	// Vantage tells who looked at the clock: one of the values of names.Vantage.
	Vantage string
	Request latency.Request
	// Timeline walks the arrivals of tokens, or of frames. It is empty where none
	// were seen, and good until the observer's next span.
	Timeline timeline.Walk
	// Standard holds what the span says under the conventions' names or others.
	Standard [names.Standards]Told
	// Unusable counts attributes that were left out because their value is not
	// what their name promises. The rest of the span counts.
	Unusable int64
	// Rejected counts times of the first chunk that cannot be true, by reason.
	Rejected [latency.Reasons]int64

	start     pcommon.Timestamp
	streaming answer
	// firstChunkIsFrame is what the reader says of it, unless the span says more.
	firstChunkIsFrame bool
}

// Observer reads one span after the other. It is not safe for concurrent use.
type Observer struct {
	observation Observation
	frames      timeline.Timeline
}

// Observe returns what a span says about a model call, or nil when no reader
// claims it. It fails for a claimed span that cannot be read, and tells even then
// which reader claimed it. The observation is good until the next call.
func (r *Observer) Observe(scope string, span ptrace.Span) (*Observation, error) {
	c, seen := look(scope, span)
	i := match(c, seen)
	if i == noReader || i != tokenStreamReader && wasDerived(c) {
		return nil, nil //nolint:nilnil // most spans are none, and that is no error
	}
	reader, o := &readers[i], &r.observation
	*o = Observation{
		Reader: i, Vantage: vantage(reader, c),
		start: span.StartTimestamp(), firstChunkIsFrame: reader.firstChunkIsFrame,
	}
	o.Request.Duration = duration(span)
	o.Request.Failed = span.Status().Code() == ptrace.StatusCodeError
	for key, v := range span.Attributes().All() {
		o.takeStandard(key, v)
		if reader.attribute != nil {
			reader.attribute(o, key, v)
		}
	}
	o.Request.OutputTokens = o.Standard[names.OutputTokens].number()
	if i == tokenStreamReader {
		return o, o.readStream(span)
	}
	r.readEvents(reader, span)
	o.conclude(reader)
	return o, nil
}

// tokenStreamReader is the index of the reader of our own spans.
const tokenStreamReader = 0

// wasDerived reports that a processor before this one has read the span already.
func wasDerived(c candidate) bool { return c.has(names.Source) }

// duration is negative for a span that ends before it starts. The difference of
// two timestamps of our age fits; any other pair gives some duration and no panic.
func duration(span ptrace.Span) time.Duration {
	return time.Duration(span.EndTimestamp() - span.StartTimestamp())
}

// vantage returns what the span itself says of its vantage, or what the reader
// knows of it.
func vantage(r *reader, c candidate) string {
	switch told := c.text(names.Vantage); told {
	case names.VantageClient, names.VantageGateway, names.VantageServer, names.VantageEngine:
		return told
	}
	if r.vantageOf != nil {
		return r.vantageOf(c.span)
	}
	return r.vantage
}
