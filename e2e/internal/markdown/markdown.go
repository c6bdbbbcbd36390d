// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package markdown reads the project's Markdown pages.
package markdown

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Read returns the text of a page.
func Read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(t), filepath.FromSlash(file)))
	require.NoError(t, err)
	return string(text)
}

var (
	// Link matches a link to a file, an anchor, or both.
	Link    = regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^) ]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	named   = regexp.MustCompile(`<a id="([^"]*)">`)
	// notInAnchor matches what a heading's anchor leaves out.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Anchors returns the anchors of a document: those that GitHub gives to its headings, and
// those that it names, such as rows of a table.
func Anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		title := Link.ReplaceAllString(found[1], "")
		all[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
	}
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		all[found[1]] = true
	}
	return all
}

// TableRows returns the cells of the rows of all tables in a page, without head rows.
func TableRows(page string) (rows [][]string) {
	head := true
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"), strings.HasPrefix(line, "|---"):
			head = !strings.HasPrefix(line, "|")
		case !head:
			rows = append(rows, strings.Split(strings.Trim(line, "|"), "|"))
		}
	}
	return rows
}
