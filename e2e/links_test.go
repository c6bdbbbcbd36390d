package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

var link = regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)

// What a document of the project links to is there.
func TestLinksLeadSomewhere(t *testing.T) {
	root, links := testenv.Root(t), 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(path), found[1]))
			require.NoError(t, err, "%s links to %s", path, found[1])
		}
		return nil
	}))
	require.Greater(t, links, 20)
}
