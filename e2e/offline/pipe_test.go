// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// As after `| head -1`: a reader that has seen enough is no error to report.
func TestFileCommands_EndQuietlyIfNothingReadsTheirOutput(t *testing.T) {
	t.Parallel()
	spans := filepath.Join(testenv.Root(t), "testdata", "spans", "agent.jsonl")
	for _, args := range [][]string{{"report", spans}, {"slowest", spans}, {"slowest", spans, "--format", "json"}, {"trace", "4bf92f", spans}} {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, read.Close())
		command := exec.CommandContext(t.Context(), collector.Built(t, "tokenpulse"), args...)
		var problems bytes.Buffer
		command.Stdout, command.Stderr = write, &problems
		require.Error(t, command.Run())
		require.NoError(t, write.Close())
		require.Equal(t, syscall.SIGPIPE, command.ProcessState.Sys().(syscall.WaitStatus).Signal(), "%v", args)
		require.Empty(t, problems.String())
	}
}
