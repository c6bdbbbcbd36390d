// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package openfile

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxFiles bounds the files of one command. Larger folders were probably named by mistake.
const maxFiles = 100_000

// Files replaces each folder by the files in it and below, and keeps other paths and "-".
// Hidden files and folders are skipped. Files of a folder are sorted by name, where rotated
// files precede the current one, so that requests come in the order of time.
func Files(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		if path == Stdin {
			if slices.Contains(files, Stdin) {
				return nil, fmt.Errorf("%q is given twice; standard input can be read once", Stdin)
			}
			files = append(files, Stdin)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		before := len(files)
		if files, err = appendFolder(files, path); err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, fmt.Errorf("%s has no files except hidden ones; give a folder with files", path)
		}
	}
	return files, nil
}

func appendFolder(files []string, folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return compareNames(a.Name(), b.Name()) })
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			if files, err = appendFolder(files, path); err != nil {
				return nil, err
			}
		case isFile(path):
			if len(files) == maxFiles {
				return nil, fmt.Errorf("%s has more than %d files; give a smaller folder", folder, maxFiles)
			}
			files = append(files, path)
		}
	}
	return files, nil
}

// isFile reports whether the path, or what it links to, is a regular file. Links to folders
// are not followed, because they may form a cycle.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// rotated matches the suffixes of logrotate, which numbers files from the newest to the
// oldest. A longer number is a date.
var rotated = regexp.MustCompile(`(?s)^(.*?)(?:\.([0-9]{1,4}))?(?:\.gz|\.zst|\.zstd)?$`)

// compareNames sorts spans-2026-11-21T03-00-00.000.jsonl and spans.jsonl-20261121 before
// spans.jsonl, and spans.jsonl.10.gz before spans.jsonl.2.gz.
func compareNames(a, b string) int {
	stemA, numberA := splitName(a)
	stemB, numberB := splitName(b)
	return cmp.Or(cmp.Compare(stemA, stemB), cmp.Compare(numberB, numberA), cmp.Compare(a, b))
}

// splitName returns the name with its end marked by a slash, which is above the "-" and "."
// that precede a date and below letters, and its rotation number, or 0.
func splitName(name string) (stem string, number int) {
	parts := rotated.FindStringSubmatch(name)
	number, _ = strconv.Atoi(parts[2]) // "" without a number
	return parts[1] + "/", number
}
