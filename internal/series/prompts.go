// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"
	"math/bits"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Prompt holds the speed of one request, in seconds, with the length of its prompt. A number that is unknown is NaN.
type Prompt struct {
	Length PromptLength
	// Cached is set if the prompt had cached tokens.
	Cached                               bool
	TimeToFirstToken, TimePerOutputToken float64
}

// PromptLength is a range of prompt lengths.
type PromptLength uint8

// PromptLengths is the number of ranges: from 1 to 128 tokens, then up to each power of two, and last those over
// 131072 tokens.
const (
	PromptLengths = 12
	shortest      = 7 // 2^7 = 128 tokens
)

// PromptLengthOf returns the range of a prompt of that many tokens, at least 1.
func PromptLengthOf(tokens uint64) PromptLength {
	return PromptLength(min(max(bits.Len64(tokens-1), shortest)-shortest, PromptLengths-1))
}

// Tokens returns the shortest and the longest prompt of the range. last is 0 for the last range, which has no limit.
func (l PromptLength) Tokens() (first, last uint64) {
	if l > 0 {
		first = 1 << (l + shortest - 1)
	}
	if l < PromptLengths-1 {
		last = 1 << (l + shortest)
	}
	return first + 1, last
}

// maxPrompts limits the prompts that wait for the history, per series and outcome.
const maxPrompts = 1024

// addPrompt keeps the prompt of a request for the history. mu is held.
func (s *series) addPrompt(o *outcomeSeries, r *Contribution) {
	tokens, _ := r.Value(numbers.InputTokens)
	ttft, hasTTFT := r.Value(numbers.TimeToFirstToken)
	tpot, hasTPOT := r.Value(numbers.TimePerOutputToken)
	if tokens < 1 || !hasTTFT && !hasTPOT {
		return
	}
	if !hasTTFT {
		ttft = math.NaN()
	}
	if !hasTPOT {
		tpot = math.NaN()
	}
	if len(o.prompts) == maxPrompts {
		s.fold()
	}
	cached, _ := r.Value(numbers.CachedInputTokens)
	o.prompts = append(o.prompts, Prompt{PromptLengthOf(uint64(tokens)), cached > 0, ttft, tpot})
}
