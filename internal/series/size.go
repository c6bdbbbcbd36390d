// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import "github.com/tokenpulse/tokenpulse/internal/numbers"

// Size is how much work a request is, in tokens.
type Size struct {
	// Output are the tokens of the answer, Prompt those of the prompt, of which Cached came from a prefix cache. The last two are 0 if
	// they are unknown.
	Output, Prompt, Cached uint64
}

// Computed returns the tokens of the prompt that were not cached.
func (s *Size) Computed() uint64 { return s.Prompt - min(s.Cached, s.Prompt) }

// Size returns the size of the request. ok is false if it is unknown, as of a refused request. Some engines report zero tokens of such
// a request: it is no short one, or else the mix would change in an overload.
func (r *Contribution) Size() (s Size, ok bool) {
	output, ok := r.Value(numbers.OutputTokens)
	prompt, _ := r.Value(numbers.InputTokens)
	cached, _ := r.Value(numbers.CachedInputTokens)
	return Size{Output: uint64(output), Prompt: uint64(prompt), Cached: uint64(cached)}, ok && (output > 0 || r.Outcome == Success)
}
