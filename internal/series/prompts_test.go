// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPromptLength_EndsAtPowersOfTwoFrom128To131072(t *testing.T) {
	type lengths struct{ first, last uint64 }
	for tokens, want := range map[uint64]lengths{
		1: {1, 128}, 128: {1, 128}, 129: {129, 256}, 256: {129, 256}, 257: {257, 512},
		65_537: {65_537, 131_072}, 131_072: {65_537, 131_072}, 131_073: {131_073, 0}, 1 << 40: {131_073, 0},
	} {
		length := PromptLengthOf(tokens)
		first, last := length.Tokens()
		require.Equal(t, want, lengths{first, last}, "%d tokens", tokens)
		require.Less(t, length, PromptLength(PromptLengths))
	}
}
