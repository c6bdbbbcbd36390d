// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// 模 takes two columns, é as e with a combining accent one.
func TestFit_TakesTheColumns(t *testing.T) {
	for text, expected := range map[string]string{
		"":               "    ",
		"ab":             "ab  ",
		"abcd":           "abcd",
		"abcde":          "abc…",
		"模型":             "模型",
		"模型模":            "模… ",
		"e\u0301e\u0301": "e\u0301e\u0301  ",
	} {
		require.Equal(t, expected, Fit(text, 4), text)
	}
}

func TestWrap_BreaksAtSpaces(t *testing.T) {
	require.Equal(t, "one two\n  three\n  four", Wrap("one two three four", 9, "  "))
	require.Equal(t, "one\n  two 3\n  four", Wrap("one two"+NoBreak+"3 four", 8, "  "))
	require.Equal(t, "one two\n  threeandahalf", Wrap("one"+NoBreak+"two"+NoBreak+"threeandahalf", 9, "  "), "too long for a line")
}
