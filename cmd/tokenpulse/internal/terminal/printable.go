// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminal formats values for a table on a terminal.
package terminal

import (
	"strconv"
	"strings"
)

// Printable replaces control characters, bidirectional overrides and whatever else is not
// Printable by Go escape sequences, such as \x1b. Labels and errors hold text of senders,
// which could otherwise move the cursor, forge rows or reverse the text of a terminal.
func Printable(text string) string {
	quoted := strconv.Quote(text)
	return unescaped.Replace(quoted[1 : len(quoted)-1])
}

// unescaped restores what strconv.Quote escapes although it is printable.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
