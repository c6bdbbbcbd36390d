// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintable(t *testing.T) {
	for text, expected := range map[string]string{
		"":                        "",
		`llama-3 "70b" \ 🦙 é 模型`:  `llama-3 "70b" \ 🦙 é 模型`,
		"\x1b[2J\x1b]0;title\x07": `\x1b[2J\x1b]0;title\a`,
		"a\tb\nc\rd\v\f\x00\x7f":  `a\tb\nc\rd\v\f\x00\x7f`,
		"\u009b31m":               `\u009b31m`,
		"gpt\u202e4-tpg\u2066":    `gpt\u202e4-tpg\u2066`,
		"a\u200bb\u00a0c\ufeff":   `a\u200bb\u00a0c\ufeff`,
		"\u2028\U000e0041":        `\u2028\U000e0041`,
		"bad\xffutf8\xc3":         `bad\xffutf8\xc3`,
		"replaced \ufffd":         "replaced \ufffd",
	} {
		require.Equal(t, expected, Printable(text))
	}
}

func TestDuration_HasThreeDigits(t *testing.T) {
	tests := map[float64]string{
		0: "0µs", 4.25e-7: "0.425µs", 0.0001234: "123µs", 0.0009994: "999µs", 0.0009996: "1ms", 0.00312: "3.12ms",
		0.0215: "21.5ms", 0.0999: "99.9ms", 0.3124: "312ms", 0.9994: "999ms", 0.9996: "1s", 1.234: "1.23s", 99.96: "100s", 12_345: "12345s",
	}
	for seconds, expected := range tests {
		require.Equal(t, expected, Duration(seconds))
	}
	require.Equal(t, "-", Duration(math.NaN()))
}

func TestPercent_NeverRoundsUpTo100(t *testing.T) {
	require.Equal(t, "99.99%", Percent(0.99999))
	require.Equal(t, "100.00%", Percent(1))
	require.Equal(t, "95.00%", Percent(0.95))
	require.Equal(t, "28.99%", Percent(0.29-1e-5))
	require.Equal(t, "29.00%", Percent(0.29))
}
