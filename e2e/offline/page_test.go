// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// spacesAtEnd are those of lines, which pages do not have.
var spacesAtEnd = regexp.MustCompile(`(?m) +$`)

// Each console block of docs/offline.md shows what its commands print. A line `...` stands for any lines. The commands run one after
// the other in one folder, which has testdata and examples.
func TestOfflinePage_CommandsPrintWhatItShows(t *testing.T) {
	t.Parallel()
	root := testenv.Root(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "offline.md"))
	require.NoError(t, err)
	folder := t.TempDir()
	for _, name := range []string{"testdata", "examples"} {
		require.NoError(t, os.Symlink(filepath.Join(root, name), filepath.Join(folder, name)))
	}
	path := filepath.Dir(collector.Built(t, "tokenpulse")) + ":" + os.Getenv("PATH")
	blocks := regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		commands := strings.Split("\n"+block[1], "\n$ ")
		require.Empty(t, strings.TrimSpace(commands[0]), "a block begins with a command")
		for _, each := range commands[1:] {
			line, shown, _ := strings.Cut(each+"\n", "\n")
			for strings.HasSuffix(line, `\`) { // goes on in the next line
				var more string
				more, shown, _ = strings.Cut(shown, "\n")
				line = strings.TrimSuffix(line, `\`) + more
			}
			command := exec.CommandContext(t.Context(), "sh", "-c", line) //nolint:gosec // the page's
			command.Dir, command.Env = folder, append(os.Environ(), "PATH="+path)
			out, _ := command.CombinedOutput() // the exit code may be a verdict
			pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(shown, "\n")), `\.\.\.`, `.*`)
			require.Regexp(t, `(?s)^`+pattern+`$`, strings.TrimRight(spacesAtEnd.ReplaceAllString(string(out), ""), "\n"), line)
		}
	}
}
