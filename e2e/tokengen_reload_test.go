// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// tokengen sends and shows latencies on both sides of two reloads of the Collector.
func TestTokengen_SurvivesReload(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"ndjson", "grpc-stream", "protobuf"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c := startCollector(t, filepath.Join(testenv.Root(t), "examples", "quickstart.yaml"))
			table := start(t, built(t, "tokengen"), "watch", "--metrics", c.metricsURL())
			require.Eventually(t, func() bool { return strings.Contains(table.output(t), "waiting for the first request") }, patience, 50*time.Millisecond)
			traffic := start(t, built(t, "tokengen"), "generate", "--model", "m=5", "--rate", "50", "--cancel-ratio", "0", "--error-ratio", "0",
				"--transport", transport, "--endpoint", c.endpoint(transport))

			shown := regexp.MustCompile(`(?m)^m +tokengen +server +(\d+)`)
			requests := func() int {
				rows := shown.FindAllStringSubmatch(table.output(t), -1)
				if rows == nil {
					return 0
				}
				n, err := strconv.Atoi(rows[len(rows)-1][1])
				require.NoError(t, err)
				return n
			}
			for range 2 {
				before := requests()
				require.Eventually(t, func() bool { return requests() > before+20 }, patience, 100*time.Millisecond)
				before = requests()
				c.signal(syscall.SIGHUP)
				require.Eventually(t, func() bool { return requests() > before+20 }, patience, 100*time.Millisecond, "after a reload")
			}
			traffic.stop(t)
			require.NotContains(t, traffic.output(t), " refused ")
			if transport == "protobuf" { // whole streams; a reload ends the live ones that are open
				require.Contains(t, traffic.output(t), " 0 rejected")
				require.Zero(t, traffic.command.ProcessState.ExitCode(), traffic.output(t))
			} else {
				require.Contains(t, traffic.output(t), "is not open")
			}
		})
	}
}
