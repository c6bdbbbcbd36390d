// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// With -update, the table is rewritten.
func TestReadme_HasWhatTheToolsDoNotRecord(t *testing.T) {
	var rows strings.Builder
	for k := TokenEvents; k < kinds; k++ {
		for _, gap := range k.Gaps() {
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", formats[k].tool, gap.Missing, gap.Effect)
		}
	}
	const file, begin, end = "../../README.md", "<!-- gaps:begin -->\n", "<!-- gaps:end -->"
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	written, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if testenv.Update() {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+rows.String()+end+after), 0o644))
		return
	}
	require.Equal(t, rows.String(), written, "run this test with -update")
}
