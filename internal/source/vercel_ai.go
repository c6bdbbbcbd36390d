package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

const (
	vercelOperation = "ai.operationId"
	vercelStream    = ".doStream"
	vercelGenerate  = ".doGenerate"
)

// vercelAI reads the spans of the Vercel AI SDK: up to version 6 and in the legacy
// telemetry of version 7 by its own attributes, in the telemetry of version 7 by
// its scope. Its first chunk is mostly one of content.
var vercelAI = reader{
	name:    names.SourceVercelAI,
	vantage: names.VantageClient,
	signs:   []*sign{{vercelOperation, isVercelCall}, modelCall},
	claims:  func(c candidate) bool { return c.scope == "gen_ai" || c.has(vercelOperation) },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case vercelOperation:
			o.tell(names.OperationName, Told{Text: "chat", Rank: readersRank})
			if strings.HasSuffix(v.Str(), vercelGenerate) {
				o.streaming = no
			}
		case "ai.model.provider":
			// On OpenAI's Responses API the first chunk says that the response was created.
			o.firstChunkIsFrame = strings.HasSuffix(v.Str(), ".responses")
		default:
			readConventions(o, key, v)
		}
	},
	event: func(o *Observation, _ ptrace.Span, event ptrace.SpanEvent) {
		// Some versions stamp the event at the span's end, so only what it says
		// counts. A call that was broken off has it here alone.
		if event.Name() != "ai.stream.firstChunk" {
			return
		}
		for key, v := range event.Attributes().All() {
			if a := aliases.get(key); a != nil && a.standard == names.TimeToFirstChunk {
				o.takeStandard(key, v)
			}
		}
	},
}

// isVercelCall tells a call of the model from the function around it, whose span
// repeats the usage of all its calls.
func isVercelCall(v pcommon.Value) bool {
	return strings.HasSuffix(v.Str(), vercelStream) || strings.HasSuffix(v.Str(), vercelGenerate)
}
