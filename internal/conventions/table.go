// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Table has the metrics of the conventions.
var Table = [...]Metric{
	{
		Names: [generations]string{"gen_ai.client.operation.duration", "gen_ai.client.inference.duration"},
		Unit:  numbers.Seconds, Description: "Duration of a model call, seen by its client.",
		Number: numbers.RequestDuration, Bounds: secondsBounds, Label: names.ErrorType,
	},
	{
		Names: [generations]string{"gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.inference.time_to_first_chunk"},
		Unit:  numbers.Seconds, Description: "Time from the start of a streaming call to its first chunk, seen by its client.",
		Number: numbers.TimeToFirstToken, Bounds: secondsBounds, Streaming: true,
		Differs: "A chunk without a token, such as one with a role only, does not count. Some instrumentations count every frame.",
	},
	{
		Names: [generations]string{"gen_ai.client.operation.time_per_output_chunk", "gen_ai.client.inference.time_per_output_chunk"},
		Unit:  numbers.Seconds, Description: "Time from one chunk of a streaming call to the next: one value per chunk after the first.",
		Number: numbers.InterChunkLatency, Bounds: secondsBounds, Streaming: true,
		Differs: "Chunks without a token do not count, likewise.",
	},
	{
		Names: [generations]string{V141: "gen_ai.client.token.usage"}, Unit: numbers.Tokens, Description: usageDescription,
		Number: numbers.InputTokens, Bounds: tokenBounds, Label: names.GenAITokenType, TokenType: names.TokensInput,
	},
	{
		Names: [generations]string{V141: "gen_ai.client.token.usage"}, Unit: numbers.Tokens, Description: usageDescription,
		Number: numbers.OutputTokens, Bounds: tokenBounds, Label: names.GenAITokenType, TokenType: names.TokensOutput,
	},
	usage("gen_ai.client.inference.usage.input_tokens", numbers.InputTokens, "Input tokens, cached ones included."),
	usage("gen_ai.client.inference.usage.output_tokens", numbers.OutputTokens, "Output tokens, reasoning included."),
	usage("gen_ai.client.inference.usage.cache_read.input_tokens", numbers.CachedInputTokens, "Input tokens that were read from a cache."),
	usage("gen_ai.client.inference.usage.cache_write.input_tokens", numbers.CacheWriteInputTokens, "Input tokens that were written to a cache."),
	usage("gen_ai.client.inference.usage.reasoning.output_tokens", numbers.ReasoningTokens, "Reasoning tokens."),
	{
		Names: [generations]string{Latest: "gen_ai.client.inference.operation.input_tokens"}, Unit: numbers.Tokens, Description: "Input tokens of a model call.",
		Number: numbers.InputTokens, Bounds: tokenBounds, Zero: true, Label: names.ErrorType,
	},
	{
		Names: [generations]string{Latest: "gen_ai.client.inference.operation.output_tokens"}, Unit: numbers.Tokens, Description: "Output tokens of a model call.",
		Number: numbers.OutputTokens, Bounds: tokenBounds, Zero: true, Label: names.ErrorType,
	},
	{
		Names: both("gen_ai.server.request.duration"), Unit: numbers.Seconds, Description: "Duration of a request, seen by the server.",
		Side: Server, Number: numbers.RequestDuration, Bounds: secondsBounds, Label: names.ErrorType,
	},
	{
		Names: both("gen_ai.server.time_to_first_token"), Unit: numbers.Seconds, Description: "Time from the start of a successful request to its first token, seen by the server.",
		Side: Server, Number: numbers.TimeToFirstToken, Successful: true,
		Bounds: []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
	},
	{
		Names: both("gen_ai.server.time_per_output_token"), Unit: numbers.Seconds, Description: "Time per output token of a successful request after its first token, seen by the server.",
		Side: Server, Number: numbers.TimePerOutputToken, Successful: true,
		Bounds:  []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5},
		Differs: "Ours ends at the last token, the convention's at the end of the request. Ours is missing where the stream was buffered.",
	},
}

const usageDescription = "Tokens of a model call, by type."

func both(name string) [generations]string { return [generations]string{name, name} }

// usage returns a counter of tokens.
func usage(name string, number numbers.ID, description string) Metric {
	return Metric{
		Names: [generations]string{Latest: name}, Unit: numbers.Tokens, Description: description,
		Number: number, Zero: true, Label: names.GenAITokenModality,
	}
}

// Bounds that the conventions advise for several metrics.
var (
	secondsBounds = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBounds   = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)
