// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// runScript returns a copy of the script of `make run` that uses free ports in place of the
// default ones, and the addresses on which its Collector listens.
func runScript(t *testing.T) (script string, addresses []string) {
	t.Helper()
	http, grpc, metrics := collector.FreeAddress(t), collector.FreeAddress(t), collector.FreeAddress(t)
	content, err := os.ReadFile(filepath.Join(testenv.Root(t), "scripts", "run"))
	require.NoError(t, err)
	text := string(content)
	for old, replacement := range map[string]string{
		"--config examples/live-page.yaml ": "--config examples/live-page.yaml --set=receivers.token_stream.protocols.http.endpoint=" + http +
			" --set=receivers.token_stream.protocols.grpc.endpoint=" + grpc + " --set=exporters.token_sli.endpoint=" + metrics + " ",
		"metrics=http://localhost:9464/metrics": "metrics=http://" + metrics + "/metrics",
		"dist/quickstart/tokenpulse generate ":  "dist/quickstart/tokenpulse generate --endpoint " + http + " ",
		"collector=$!\n":                        "collector=$!\necho $collector >dist/collector.pid\n",
	} {
		require.Equal(t, 1, strings.Count(text, old), old)
		text = strings.ReplaceAll(text, old, replacement)
	}
	// The script changes to the folder above its own, and writes logs to dist.
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "dist"), 0o750))
	for _, name := range []string{"examples", "dist/quickstart"} {
		require.NoError(t, os.Symlink(filepath.Join(testenv.Root(t), name), filepath.Join(folder, name)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "scripts"), 0o750))
	script = filepath.Join(folder, "scripts", "run")
	require.NoError(t, os.WriteFile(script, []byte(text), 0o700)) //nolint:gosec // the test runs it
	return script, []string{http, grpc, metrics}
}

func TestRunScript_ShowsPercentilesAndStopsOnCtrlC(t *testing.T) {
	t.Parallel()
	collector.Built(t, "quickstart/otelcol-quickstart")
	path, addresses := runScript(t)
	script := collector.StartProcess(t, path)
	row := regexp.MustCompile(`(?m)^\S+.*\d(\.\d+)? ?m?s.*\d(\.\d+)? ?m?s`)
	require.Eventually(t, func() bool { return row.MatchString(script.Output(t)) },
		collector.Patience, 200*time.Millisecond, "no percentiles after %s:\n%s", collector.Patience, script.Output(t))

	for _, address := range addresses {
		connection, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, connection.Close())
	}

	// It does not show the numbers of a Collector that it did not start.
	second := collector.StartProcess(t, script.Command.Path)
	select {
	case <-second.Exited:
	case <-time.After(collector.Patience):
		t.Fatal("the script starts beside another Collector")
	}
	require.Equal(t, 1, second.Command.ProcessState.ExitCode())
	require.Equal(t, "Another Collector already serves http://"+addresses[2]+"/metrics: stop it first.\n", second.Output(t))

	script.Signal(syscall.SIGINT)
	select {
	case <-script.Exited:
	case <-time.After(collector.Patience):
		t.Fatal("Ctrl-C did not stop the script")
	}
	for _, address := range addresses {
		_, err := net.Dial("tcp", address)
		require.Error(t, err, "a process still listens on %s", address)
	}
}

func TestRunScript_NamesTheLogIfTheCollectorDies(t *testing.T) {
	t.Parallel()
	collector.Built(t, "quickstart/otelcol-quickstart")
	path, _ := runScript(t)
	script := collector.StartProcess(t, path)
	require.Eventually(t, func() bool { return strings.Contains(script.Output(t), "Live page") }, collector.Patience, 50*time.Millisecond)
	written, err := os.ReadFile(filepath.Join(filepath.Dir(path), "..", "dist", "collector.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(written)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	select {
	case <-script.Exited:
	case <-time.After(collector.Patience):
		t.Fatal("the script goes on without its Collector")
	}
	require.Equal(t, 1, script.Command.ProcessState.ExitCode())
	require.Contains(t, script.Output(t), "The Collector has ended. Last lines of dist/collector.log:\n")
}
