// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Span events of a model call, which trace backends draw as ticks.
const (
	FirstTokenEvent = "tokenpulse.first_token"
	// StallEvent also has the duration of the stall, under the key of the number numbers.StallDuration.
	StallEvent     = "tokenpulse.stall"
	LastTokenEvent = "tokenpulse.last_token"
)

// TokenIndex is the attribute of StallEvent that says before which token the stall was.
const TokenIndex = "tokenpulse.token.index"

// Span events of other instrumentations, each one a chunk of the span's stream.
const (
	TokenGenerated     = "gen_ai.token.generated"
	CompletionChunk    = "gen_ai.content.completion.chunk"
	LLMCompletionChunk = "llm.content.completion.chunk"
	ContentChunk       = "gen_ai.content.chunk"
	GenAIStreamChunk   = "gen_ai.stream.chunk"
)

// EventTokens is the attribute of such an event with its number of tokens.
const EventTokens = "tokens"
