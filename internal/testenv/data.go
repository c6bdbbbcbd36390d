// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Data returns the path of a file in the testdata folder at the project's root.
func Data(tb testing.TB, name string) string {
	tb.Helper()
	return filepath.Join(Root(tb), "testdata", filepath.FromSlash(name))
}

// ReadJSON reads a JSON file of the testdata folder into a value.
func ReadJSON(tb testing.TB, name string, into any) {
	tb.Helper()
	content, err := os.ReadFile(Data(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
}

// Unzip returns the content of a gzip file.
func Unzip(tb testing.TB, path string) []byte {
	tb.Helper()
	file, err := os.Open(path) //nolint:gosec // a test names the file
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	content, err := io.ReadAll(compressed)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return content
}
