package source

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// openInferenceLLM is the sign of a model call in OpenInference's words.
var openInferenceLLM = &sign{names.OpenInferenceSpanKind, oneOf("LLM")}

// openInference reads the spans of OpenInference. Its event of the first token
// marks the first frame, which tells the role, or that the response was created.
var openInference = reader{
	name:              names.SourceOpenInference,
	vantage:           names.VantageClient,
	signs:             []*sign{openInferenceLLM},
	claims:            func(c candidate) bool { return !isEnvoyAIGateway(c) && !isLiteLLM(c) },
	firstChunkIsFrame: true,
	event:             openInferenceEvent,
}

func openInferenceEvent(o *Observation, span ptrace.Span, event ptrace.SpanEvent) {
	if event.Name() == "First Token Stream Event" {
		o.firstTokenEvent(span, event, true)
	}
}
