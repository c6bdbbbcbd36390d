// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlainLength(t *testing.T) {
	for b := range 256 {
		stops := b < 0x20 || b == '"' || b == '\\' || b >= 0x80
		for length := range 20 {
			// What comes after the byte must not matter, nor what before.
			for _, after := range []string{"", "x", "\x00\x01\"\\\xff\x7f\x20\x21\x23", "abcdefghijk"} {
				for _, before := range []string{"a", "\x7f", " ", "!", "#", "["} {
					text := append(bytes.Repeat([]byte(before), length), byte(b))
					text = append(text, after...)
					if stops {
						require.Equal(t, length, plainLength(text), "%q", text)
					} else {
						require.Greater(t, plainLength(text), length, "%q", text)
					}
				}
			}
		}
	}
}

func TestLeadingDigits(t *testing.T) {
	const digits = "98765432101234567890123456789"
	for start := range 10 {
		for length := range len(digits) - start {
			for b := range 256 {
				if b >= '0' && b <= '9' {
					continue
				}
				text := digits[start:start+length] + string([]byte{byte(b)}) + "12345678"
				n, rest := leadingDigits([]byte(text))
				if length == 0 || length > 19 {
					require.Nil(t, rest, "%q", text)
					continue
				}
				want, err := strconv.ParseUint(text[:length], 10, 64)
				require.NoError(t, err)
				require.Equal(t, want, n, "%q", text)
				require.Equal(t, text[length:], string(rest))
			}
		}
	}
	n, rest := leadingDigits([]byte("9999999999999999999"))
	require.Equal(t, uint64(9999999999999999999), n)
	require.Empty(t, rest)
	require.NotNil(t, rest)
}

func TestNineteenDigits(t *testing.T) {
	for _, digits := range []string{"1795233292181556000", "9223372036854775807", "9999999999999999999", "0000000000000000001", "1234567890123456789"} {
		want, err := strconv.ParseUint(digits, 10, 64)
		require.NoError(t, err)
		for _, after := range []string{"", "0", "/", ":", `","tokens":1}`} {
			require.Equal(t, want, nineteenDigits([]byte(digits+after)), "%s%s", digits, after)
		}
		for length := range digits {
			require.Zero(t, nineteenDigits([]byte(digits[:length])))
			for b := range 256 {
				if b >= '0' && b <= '9' {
					continue
				}
				text := []byte(digits + "12345678")
				text[length] = byte(b)
				require.Zero(t, nineteenDigits(text), "%q", text)
			}
		}
	}
}
