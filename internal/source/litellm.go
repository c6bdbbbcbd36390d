package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// liteLLM reads the spans of LiteLLM, which names operations after its own
// functions. It writes on the request's own span where there is one, and on one
// of its own where there is none.
var liteLLM = reader{
	name:    names.SourceLiteLLM,
	vantage: names.VantageGateway,
	signs:   []*sign{modelCall, {names.GenAIOperationName, isLiteLLMCall}, {requestType, isLiteLLMCall}},
	claims:  isLiteLLM,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == requestType {
			o.tell(names.OperationName, Told{Text: operationOf(v.Str()), Rank: readersRank})
		}
	},
}

// isLiteLLM knows its spans whatever else they say: it can add the attributes of
// OpenInference and Langfuse to its own.
func isLiteLLM(c candidate) bool {
	return c.scope == "litellm" || c.span.Name() == "litellm_request" ||
		c.has("litellm.call_id", "litellm.request.streaming") ||
		c.has("llm.is_streaming") && !saysOpenLLMetry(c) // which wrote that once, too
}

var isLiteLLMCall = oneOf("completion", "acompletion", "text_completion", "atext_completion",
	"responses", "aresponses", "anthropic_messages", "generate_content", "agenerate_content")

// operationOf returns the conventions' name of what older instrumentations call
// the type of a request.
func operationOf(callType string) string {
	switch callType {
	case "text_completion", "atext_completion":
		return "text_completion"
	case "generate_content", "agenerate_content":
		return "generate_content"
	default:
		return "chat"
	}
}
