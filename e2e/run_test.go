// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The script of `make run` uses the default ports, as a first-time user does.
func TestRunScript_ShowsPercentilesAndStopsOnCtrlC(t *testing.T) {
	built(t, "otelcol-tokenpulse")
	script := start(t, filepath.Join(testenv.Root(t), "scripts", "run"))
	addresses := []string{"localhost:4319", "localhost:4320", "localhost:9464"}
	row := regexp.MustCompile(`(?m)^\S+.*\d(\.\d+)? ?m?s.*\d(\.\d+)? ?m?s`)
	require.Eventually(t, func() bool { return row.MatchString(script.output(t)) },
		patience, 200*time.Millisecond, "no percentiles after %s:\n%s", patience, script.output(t))

	for _, address := range addresses {
		connection, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, connection.Close())
	}

	// It does not show the numbers of a Collector that it did not start.
	second := start(t, script.command.Path)
	select {
	case <-second.exited:
	case <-time.After(patience):
		t.Fatal("the script starts beside another Collector")
	}
	require.Equal(t, 1, second.command.ProcessState.ExitCode())
	require.Equal(t, "Another Collector already serves http://localhost:9464/metrics: stop it first.\n", second.output(t))

	script.signal(syscall.SIGINT)
	select {
	case <-script.exited:
	case <-time.After(patience):
		t.Fatal("Ctrl-C did not stop the script")
	}
	for _, address := range addresses {
		_, err := net.Dial("tcp", address)
		require.Error(t, err, "a process still listens on %s", address)
	}
}
