// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Fit cuts or fills a printable text so that it takes so many columns. A cut text ends with an ellipsis.
func Fit(text string, columns int) string {
	if width := uniseg.StringWidth(text); width <= columns {
		return text + strings.Repeat(" ", columns-width)
	}
	kept, width, state := "", 0, -1
	for rest := text; rest != ""; {
		var cluster string
		var more int
		cluster, rest, more, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if width+more > columns-1 {
			break
		}
		kept, width = kept+cluster, width+more
	}
	return kept + "…" + strings.Repeat(" ", max(0, columns-1-width))
}

// Cells returns the columns that a printable text takes.
func Cells(text string) int { return uniseg.StringWidth(text) }

// NoBreak is a space at which Wrap breaks a line only if it must.
const NoBreak = "\u00a0"

// Wrap breaks a line at spaces so that it fits so many columns where it can. Further lines are indented.
func Wrap(line string, columns int, indent string) string {
	var wrapped strings.Builder
	words := strings.Split(line, " ")
	for i, word := range words {
		if Cells(word) > columns-Cells(indent) {
			words[i] = strings.ReplaceAll(word, NoBreak, " ")
		}
	}
	width := 0
	for i, word := range strings.Split(strings.Join(words, " "), " ") {
		more := Cells(word)
		switch {
		case i == 0:
		case width+1+more > columns:
			wrapped.WriteString("\n" + indent)
			width = Cells(indent)
		default:
			wrapped.WriteString(" ")
			width++
		}
		wrapped.WriteString(word)
		width += more
	}
	return strings.ReplaceAll(wrapped.String(), NoBreak, " ")
}
