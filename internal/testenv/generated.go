// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the files that the test generates, instead of comparing them")

// Update reports whether the test run has the flag -update.
func Update() bool { return *update }

// RequireTables fails if a table of a page differs from the generated one. The table
// NAME lies between the lines <!-- NAME:begin --> and <!-- NAME:end -->. With -update it
// rewrites the tables instead. The page is relative to the project's root.
func RequireTables(tb testing.TB, page string, tables map[string]string) {
	tb.Helper()
	file := filepath.Join(Root(tb), filepath.FromSlash(page))
	content, err := os.ReadFile(file) //nolint:gosec // a page of the project
	require.NoError(tb, err)
	text := string(content)
	for name, table := range tables {
		begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
		before, rest, found := strings.Cut(text, begin)
		require.True(tb, found, "%s has no line %s", page, begin)
		written, after, found := strings.Cut(rest, end)
		require.True(tb, found, "%s has no line %s", page, end)
		if !Update() {
			require.Equal(tb, table, written, "%s is out of date: run this test with -update", page)
		}
		text = before + begin + table + end + after
	}
	if Update() {
		require.NoError(tb, os.WriteFile(file, []byte(text), 0o644)) //nolint:gosec // as git stores it
	}
}
