// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

func TestIdentityOf_ReturnsTheIdentityOfAKey(t *testing.T) {
	long := strings.Repeat("é", names.MaxLabelLength)
	tests := map[string]struct {
		dimensions, want []string
	}{
		"plain values":                      {[]string{"chat", "llama"}, []string{"chat", "llama"}},
		"missing value":                     {[]string{"", "llama"}, []string{"", "llama"}},
		"no dimensions":                     {[]string{}, []string{}},
		"invalid UTF-8":                     {[]string{"a\xff\xfeb", "c"}, []string{"a?b", "c"}},
		"too long: cut between runes":       {[]string{"x" + long, "y"}, []string{"x" + long[:254], "y"}},
		"too long: only continuation bytes": {[]string{strings.Repeat("\x80", 1000), "y"}, []string{"?", "y"}},
		"zero byte, comma and quotes":       {[]string{"a\x00b,c", "\n\""}, []string{"a\x00b,c", "\n\""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			key := (&Contribution{Dimensions: clean(test.dimensions), Vantage: "engine"}).AppendKey(nil)
			labels := LabelsOf(string(key))
			dimensions, vantage := labels.Dimensions, labels.Vantage
			require.Equal(t, test.want, dimensions)
			require.Equal(t, "engine", vantage)
			for _, d := range dimensions {
				require.True(t, utf8.ValidString(d))
				require.LessOrEqual(t, len(d), names.MaxLabelLength)
			}
		})
	}
	require.Equal(t, Labels{Overflow: true}, LabelsOf(overflowKey))
	require.True(t, IsKey(overflowKey, 3))
	require.True(t, IsKey("\x01a\x00", 1))
	for _, malformed := range []string{"\x01a", "\x01", "\x05a", "\xff", "\x01a\x00\x00", "\x81\x00a\x00", "\x01\xff\x00"} {
		require.False(t, IsKey(malformed, 1), "%q", malformed)
	}
	shifted := (&Contribution{Dimensions: []string{"ab", "c"}}).AppendKey(nil)
	require.NotEqual(t, shifted, (&Contribution{Dimensions: []string{"a", "bc"}}).AppendKey(nil), "the lengths are part of the key")
}

func clean(values []string) []string {
	cleaned := []string{}
	for _, v := range values {
		cleaned = append(cleaned, names.CleanLabel(v))
	}
	return cleaned
}
