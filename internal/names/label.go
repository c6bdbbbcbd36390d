// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"strings"
	"unicode/utf8"
)

// MaxLabelLength limits the value of a label, in bytes. Longer values are cut: they
// cost memory in every system downstream and rarely distinguish more series.
const MaxLabelLength = 256

// CleanLabel makes v a label value: valid UTF-8 of at most MaxLabelLength bytes.
func CleanLabel(v string) string {
	if len(v) > MaxLabelLength {
		end := MaxLabelLength
		for end > MaxLabelLength-utf8.UTFMax && !utf8.RuneStart(v[end]) {
			end--
		}
		v = v[:end]
	}
	if utf8.ValidString(v) {
		return v
	}
	// A one-byte replacement keeps the limit; U+FFFD has three bytes.
	return strings.ToValidUTF8(v, "?")
}
