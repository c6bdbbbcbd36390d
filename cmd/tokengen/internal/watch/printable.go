// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// printable replaces control characters, bidirectional overrides and whatever else is not
// printable by Go escape sequences, such as \x1b. Labels and errors hold text of senders,
// which could otherwise move the cursor, forge rows or reverse the text of a terminal.
func printable(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			out.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return out.String()
}
