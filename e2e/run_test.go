package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/need"
)

// What `make run` starts shows real numbers, and Ctrl-C stops all of it. It uses
// the default ports, as a user's first try does.
func TestRun(t *testing.T) {
	built(t, "otelcol-tokenpulse")
	script := start(t, filepath.Join(need.Root(t), "scripts", "run"))
	row := regexp.MustCompile(`(?m)^\S+.*\d(\.\d+)? ?m?s.*\d(\.\d+)? ?m?s`)
	require.Eventually(t, func() bool { return row.MatchString(script.output(t)) },
		patience, 200*time.Millisecond, "no percentiles after %s:\n%s", patience, script.output(t))

	script.signal(syscall.SIGINT)
	select {
	case <-script.exited:
	case <-time.After(patience):
		t.Fatal("Ctrl-C did not stop it")
	}
	output, err := exec.Command("pgrep", "-f", filepath.Join("dist", "otelcol-tokenpulse")+" --config examples/quickstart.yaml").Output()
	require.Error(t, err, "still running: %s", output)
}
