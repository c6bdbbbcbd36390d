// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// liteLLM reads the spans of LiteLLM, which names operations after its own functions. It writes on
// the span of the incoming request, or on a span of its own if there is no incoming request.
var liteLLM = reader{
	name:    names.SourceLiteLLM,
	vantage: timeline.VantageGateway,
	signs:   []*sign{modelCall, {names.GenAIOperationName, isLiteLLMCall}, {requestType, isLiteLLMCall}},
	claims:  isLiteLLM,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == requestType {
			o.set(names.OperationName, Reported{Text: operationOf(v.Str()), Rank: readerRank})
		}
	},
}

// isLiteLLM recognises LiteLLM's spans even if they carry attributes of OpenInference or Langfuse,
// which LiteLLM can add.
func isLiteLLM(c candidate) bool {
	return c.scope == "litellm" || c.span.Name() == "litellm_request" ||
		c.has("litellm.call_id", "litellm.request.streaming") ||
		c.has("llm.is_streaming") && !isOpenLLMetry(c) // old releases of OpenLLMetry wrote it too
}

var isLiteLLMCall = oneOf("completion", "acompletion", "text_completion", "atext_completion",
	"responses", "aresponses", "anthropic_messages", "generate_content", "agenerate_content")

// operationOf returns the conventions' operation for LiteLLM's type of call.
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
