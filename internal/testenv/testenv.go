// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package testenv says what a test needs besides Go, make and git: a program, or
// a file in the testdata folder at the project's root. A test that lacks a program
// skips and names it. With TOKENPULSE_NO_SKIP set, as in CI, it fails instead. It also
// compares generated tables in docs with their source, waits for goroutines to end, and
// finds free ports.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program returns the path of a program, or of the first of other programs that do as well. The
// test skips, or fails with TOKENPULSE_NO_SKIP, if none is installed.
func Program(tb testing.TB, name string, others ...string) string {
	tb.Helper()
	for _, candidate := range append([]string{name}, others...) {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	Missing(tb, "needs the program "+name)
	return ""
}

// Root returns the project's root folder, which holds builder-config.yaml.
func Root(tb testing.TB) string {
	tb.Helper()
	folder, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "builder-config.yaml")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			tb.Fatal("the working directory is not inside the project")
		}
		folder = parent
	}
}

// Missing skips a test that lacks something, or fails it with TOKENPULSE_NO_SKIP.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("TOKENPULSE_NO_SKIP") != "" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}
