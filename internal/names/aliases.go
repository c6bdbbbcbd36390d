// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Standard is a value that the OpenTelemetry conventions have an attribute for and
// that instrumentations also send under other names.
type Standard uint8

// The values that are read from the spans of every instrumentation.
const (
	OperationName Standard = iota
	ProviderName
	RequestModel
	InputTokens
	OutputTokens
	ReasoningTokens
	CacheReadInputTokens
	CacheWriteInputTokens
	TimeToFirstChunk // seconds
	Streaming
	FinishReasons
	ErrorKind
	ChoiceCount       // answers to one request
	AudioOutputTokens // part of OutputTokens
	StandardCount     // number of values
)

// Aliases lists the attribute names of each value: the name of the conventions
// first, then the others, most trusted first.
var Aliases = [StandardCount][]string{
	OperationName: {GenAIOperationName},
	ProviderName:  {GenAIProviderName, GenAISystem, "llm.provider", "llm.system", "ai.model.provider"},
	RequestModel:  {GenAIRequestModel, "llm.model_name", "langfuse.observation.model.name", "ai.model.id", "llm.request.model", GenAIResponseModel},
	InputTokens: {
		GenAIInputTokens, "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
		"ai.usage.inputTokens", "ai.usage.promptTokens", "llm.usage.prompt_tokens",
	},
	OutputTokens: {
		GenAIOutputTokens, "gen_ai.usage.completion_tokens", "llm.token_count.completion",
		"ai.usage.outputTokens", "ai.usage.completionTokens", "llm.usage.completion_tokens",
	},
	ReasoningTokens: {
		GenAIReasoningTokens, "gen_ai.usage.reasoning_tokens", "gen_ai.usage.details.reasoning_tokens",
		"llm.token_count.completion_details.reasoning",
		"ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens",
		"gen_ai.usage.completion_token_details.reasoning_tokens", "gen_ai.usage.output_token_details.reasoning_tokens", // Bifrost
	},
	CacheReadInputTokens: {
		GenAICacheReadInputTokens, "gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.cached_tokens", "gen_ai.usage.cached_input_tokens",
		"llm.token_count.prompt_details.cache_read", "ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens",
		"gen_ai.usage.prompt_token_details.cached_read_tokens", "gen_ai.usage.input_token_details.cached_read_tokens", // Bifrost
	},
	CacheWriteInputTokens: {
		GenAICacheWriteInputTokens, "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
		"llm.token_count.prompt_details.cache_write", "ai.usage.inputTokenDetails.cacheWriteTokens",
	},
	TimeToFirstChunk: {
		GenAITimeToFirstChunk, "gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.inference.time_to_first_chunk",
		"ai.response.msToFirstChunk", "ai.stream.msToFirstChunk", "ttft_ms",
	},
	Streaming: {
		GenAIRequestStream, "gen_ai.request.is_stream", "gen_ai.is_streaming", "llm.is_streaming",
		"litellm.request.streaming", "langsmith.request.streaming",
	},
	FinishReasons:     {GenAIFinishReasons, "llm.finish_reason", "ai.response.finishReason", "finish_reason"},
	ErrorKind:         {ErrorType},
	ChoiceCount:       {"gen_ai.request.choice.count", "gen_ai.request.candidate_count", "llm.request.n"},
	AudioOutputTokens: {"gen_ai.usage.audio.output_tokens", "llm.token_count.completion_details.audio"},
}

// InMilliseconds holds the aliases of durations in milliseconds. All others are in
// seconds.
var InMilliseconds = map[string]bool{
	"ai.response.msToFirstChunk": true,
	"ai.stream.msToFirstChunk":   true,
	"ttft_ms":                    true,
}
