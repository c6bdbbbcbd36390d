package source

import "github.com/tokenpulse/tokenpulse/internal/names"

// envoyAIGateway reads the spans of Envoy AI Gateway, in OpenInference's words or
// in those of the conventions. Its event of the first token is mostly stamped when
// the span ends, and then says nothing.
var envoyAIGateway = reader{
	name:              names.SourceEnvoyAIGateway,
	vantage:           names.VantageGateway,
	signs:             []*sign{openInferenceLLM, modelCall},
	claims:            isEnvoyAIGateway,
	firstChunkIsFrame: true,
	event:             openInferenceEvent,
}

func isEnvoyAIGateway(c candidate) bool { return c.scope == "envoyproxy/ai-gateway" }
