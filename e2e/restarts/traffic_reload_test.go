// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
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

// tokenpulse sends and shows latencies on both sides of two reloads of the Collector.
func TestTokenpulse_SurvivesReload(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"ndjson", "grpc-stream", "protobuf"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := collector.Start(t, filepath.Join(testenv.Root(t), "examples", "quickstart.yaml"))
			table := collector.StartProcess(t, collector.Built(t, "tokenpulse"), "watch", "--metrics", c.MetricsURL())
			require.Eventually(t, func() bool { return strings.Contains(table.Output(t), "waiting for the first request") }, collector.Patience, 50*time.Millisecond)
			traffic := collector.StartProcess(t, collector.Built(t, "tokenpulse"), "generate", "--model", "m=5", "--rate", "50", "--cancel-ratio", "0", "--error-ratio", "0",
				"--transport", transport, "--endpoint", c.Endpoint(transport))

			shown := regexp.MustCompile(`(?m)^m +tokenpulse +server +(\d+)`)
			requests := func() int {
				rows := shown.FindAllStringSubmatch(table.Output(t), -1)
				if rows == nil {
					return 0
				}
				n, err := strconv.Atoi(rows[len(rows)-1][1])
				require.NoError(t, err)
				return n
			}
			for range 2 {
				before := requests()
				require.Eventually(t, func() bool { return requests() > before+20 }, collector.Patience, 100*time.Millisecond)
				before = requests()
				c.Signal(syscall.SIGHUP)
				require.Eventually(t, func() bool { return requests() > before+20 }, collector.Patience, 100*time.Millisecond, "after a reload")
			}
			traffic.Stop(t)
			require.NotContains(t, traffic.Output(t), " refused ")
			if transport == "protobuf" { // whole streams; a reload ends the live ones that are open
				require.Contains(t, traffic.Output(t), " 0 rejected")
				require.Zero(t, traffic.Command.ProcessState.ExitCode(), traffic.Output(t))
			} else {
				require.Contains(t, traffic.Output(t), "is not open")
			}
		})
	}
}
