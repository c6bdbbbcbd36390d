// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package openfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// touch creates empty files below a folder.
func touch(t *testing.T, folder string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
}

// The names are those of the file exporter up to v0.154 and from v0.155 on, of logrotate, and of logrotate with dateext, each from the oldest.
func TestFiles_SortsRotatedFilesByTime(t *testing.T) {
	for writer, names := range map[string][]string{
		"lumberjack":  {"spans-2026-11-21T03-00-00.000.jsonl", "spans-2026-11-21T04-00-00.500.jsonl", "spans.jsonl"},
		"timberjack":  {"spans-2026-11-21T03-00-00.000-size.jsonl", "spans-2026-11-21T04-00-00.500-time.jsonl.gz", "spans.jsonl"},
		"no suffix":   {"spans-2026-11-21T03-00-00.000", "spans"},
		"logrotate":   {"spans.jsonl.10.gz", "spans.jsonl.9.gz", "spans.jsonl.2.gz", "spans.jsonl.1", "spans.jsonl"},
		"dateext":     {"spans.jsonl-20261120.gz", "spans.jsonl-20261121", "spans.jsonl"},
		"date":        {"spans.jsonl.20261120.zst", "spans.jsonl.20261121", "spans.jsonl"},
		"no rotation": {"a", "ab.zst", "b.zst"},
	} {
		t.Run(writer, func(t *testing.T) {
			folder := t.TempDir()
			touch(t, folder, names...)
			files, err := Files([]string{folder})
			require.NoError(t, err)
			for i := range names {
				names[i] = filepath.Join(folder, names[i])
			}
			require.Equal(t, names, files)
		})
	}
}

func TestFiles_ExpandsFoldersInPlaceWithoutHiddenFiles(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	touch(t, folder, "b/2/x", "b/1/x", "a", "c", ".hidden", ".folder/x", "b/.swp")
	touch(t, elsewhere, "z")
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "z"), filepath.Join(folder, "link")))
	require.NoError(t, os.Symlink(folder, filepath.Join(folder, "cycle")))
	require.NoError(t, os.Symlink("missing", filepath.Join(folder, "dangling")))
	hidden := filepath.Join(folder, ".hidden")
	in := func(name string) string { return filepath.Join(folder, name) }
	files, err := Files([]string{hidden, Stdin, folder, filepath.Join(elsewhere, "z")})
	require.NoError(t, err)
	require.Equal(t, []string{hidden, Stdin, in("a"), in("b/1/x"), in("b/2/x"), in("c"), in("link"), filepath.Join(elsewhere, "z")}, files)
}

func TestFiles_RejectsWhatCannotBeRead(t *testing.T) {
	empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	touch(t, empty, ".hidden")
	_, err := Files([]string{empty})
	require.EqualError(t, err, empty+" has no files except hidden ones; give a folder with files")
	_, err = Files([]string{missing})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, missing)
	_, err = Files([]string{Stdin, Stdin})
	require.EqualError(t, err, `"-" is given twice; standard input can be read once`)
}

func TestFiles_RejectsFoldersWithTooManyFiles(t *testing.T) {
	folder := t.TempDir()
	touch(t, folder, "a", "b")
	full := make([]string, maxFiles-1)
	files, err := appendFolder(full[:maxFiles-2:maxFiles-2], folder)
	require.NoError(t, err)
	require.Len(t, files, maxFiles)
	_, err = appendFolder(full, folder)
	require.EqualError(t, err, folder+" has more than 100000 files; give a smaller folder")
}
