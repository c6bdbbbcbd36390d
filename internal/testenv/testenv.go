// Package testenv says what a test needs besides Go, make and git, and skips it by
// name where that is absent. With TOKENPULSE_NO_SKIP set, as in CI, nothing
// skips: what is absent fails the test.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program returns the path of a program.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		absent(tb, "needs the program "+name)
	}
	return path
}

// Shared returns the path of a file in the folder of recordings and reference
// cases that lies beside the project.
func Shared(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(Root(tb), "..", "shared", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		absent(tb, "needs ../shared/"+name)
	}
	return path
}

// Root returns the project's root folder.
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
			tb.Fatal("not inside the project")
		}
		folder = parent
	}
}

func absent(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("TOKENPULSE_NO_SKIP") != "" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}
