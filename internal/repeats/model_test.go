// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package repeats

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSameModel(t *testing.T) {
	for _, same := range [][2]string{
		{"gpt-5", "gpt-5"},
		{"openai/gpt-5", "gpt-5"},
		{"GPT-5", "openrouter/openai/gpt-5"},
		{"gpt-5", "gpt-5-2025-08-07"},
		{"gpt-4", "gpt-4-0613"},
		{"gemini-1.5-pro", "gemini-1.5-pro-002"},
		{"claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"},
		{"claude-3-5-sonnet@20241022", "claude-3-5-sonnet-20241022"},
		{"gpt-4o-2024-08-06", "gpt-4o-20240806"},
		{"llama3:latest", "llama3"},
	} {
		require.True(t, sameModel(same[0], same[1]), same)
		require.True(t, sameModel(same[1], same[0]), same)
	}
	for _, other := range [][2]string{
		{"gpt-5", "gpt-5-mini"},
		{"gpt-5", "gpt-4o"},
		{"gpt-4", "gpt"},
		{"gpt-4-0613", "gpt-4-0314"},
		{"claude-3", "claude-3-5"},
		{"gpt-5-mini-2025-08-07", "gpt-5-2025-08-07"},
		{"llama-3", "llama-3-70b"},
		{"gpt-5", ""},
	} {
		require.False(t, sameModel(other[0], other[1]), other)
		require.False(t, sameModel(other[1], other[0]), other)
	}
}
