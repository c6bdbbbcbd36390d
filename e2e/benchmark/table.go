// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"unicode/utf8"
)

// table returns a Markdown table. Columns are padded; the first is aligned to the left,
// the others to the right.
func table(header []string, rows [][]string) string {
	rule := make([]string, len(header))
	widths := make([]int, len(header))
	for column := range header {
		for _, row := range append([][]string{header}, rows...) {
			widths[column] = max(widths[column], utf8.RuneCountInString(row[column]), 3)
		}
		rule[column] = strings.Repeat("-", widths[column])
		if column > 0 {
			rule[column] = rule[column][1:] + ":"
		}
	}
	var text strings.Builder
	for _, row := range append([][]string{header, rule}, rows...) {
		for column, cell := range row {
			padding := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell))
			if column > 0 {
				cell, padding = padding+cell, ""
			}
			text.WriteString("| " + cell + padding + " ")
		}
		text.WriteString("|\n")
	}
	return text.String()
}
