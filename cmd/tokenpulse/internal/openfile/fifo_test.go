// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package openfile

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen_ReadsANamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	go func() { _ = os.WriteFile(path, []byte("text"), 0o600) }()
	file, err := Open(t.Context(), path, nil)
	require.NoError(t, err)
	content, err := io.ReadAll(file)
	require.NoError(t, err)
	require.Equal(t, "text", string(content))
	require.NoError(t, file.Close())
}
