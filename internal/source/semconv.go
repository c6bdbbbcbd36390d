package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// semconv reads model calls in the words of the OpenTelemetry conventions, whoever
// wrote them: .NET, python-genai, pydantic-ai, instrumentation-openai and others.
var semconv = reader{
	name:      names.SourceSemconv,
	signs:     []*sign{modelCall},
	claims:    func(c candidate) bool { return !c.has(langSmithKind) },
	vantageOf: conventionsVantage,
	attribute: readConventions,
}

// conventionsVantage takes the conventions at their word: clients call, servers
// are called.
func conventionsVantage(span ptrace.Span) string {
	if span.Kind() == ptrace.SpanKindServer {
		return names.VantageServer
	}
	return names.VantageClient
}

// readConventions takes what the conventions name as metrics and some write on
// the span.
func readConventions(o *Observation, key string, v pcommon.Value) {
	switch key {
	case "gen_ai.client.operation.time_per_output_chunk", "gen_ai.client.inference.time_per_output_chunk":
		o.Request.Chunks.InterChunk[latency.Mean] = measure(time.Second, v, false, &o.Unusable)
	}
}
