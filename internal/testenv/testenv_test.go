// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

func TestProgram_FirstOfSeveralThatIsInstalled(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"second", "third"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o755)) //nolint:gosec // a program
	}
	t.Setenv("PATH", folder)
	require.Equal(t, filepath.Join(folder, "second"), testenv.Program(t, "first", "second", "third"))
}
