// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// historyStorage extends examples/quickstart.yaml.
const historyStorage = `
extensions:
  file_storage:
    directory: ${env:STORAGE_DIRECTORY}
exporters:
  token_sli: {storage: file_storage}
service: {extensions: [file_storage]}
`

// The built Collector with storage: what the page showed is there after a clean stop, and
// after a kill at most the last seconds are missing. Percentiles are those from before.
func TestLivePage_HistorySurvivesStopAndKillWithStorage(t *testing.T) {
	t.Parallel()
	storage := t.TempDir()
	collector.Setenv(t, "STORAGE_DIRECTORY", storage)
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "storage.yaml", historyStorage))
	sent := 0
	send := func(requests int) {
		t.Helper()
		sendBurst(t, c, requests)
		sent += requests
		require.Eventually(t, func() bool {
			shown, _ := collector.HistoryRequests(t, c)
			return shown == sent
		}, collector.Patience, 100*time.Millisecond)
	}
	send(100)
	_, before := collector.HistoryRequests(t, c)
	c.Stop(t)
	c = c.Again(t)
	shown, after := collector.HistoryRequests(t, c)
	require.Equal(t, sent, shown, "clean stop")
	require.Equal(t, before, after)

	send(50)
	certain := sent
	// The first save from now on may have begun before the last request. The second did not.
	saved := filepath.Join(storage, "exporter_token_sli__history")
	for range 2 {
		before := collector.Committed(t, saved)
		send(10)
		collector.WaitForCommit(t, saved, before+1)
	}
	c.Kill(t)
	c = c.Again(t)
	shown, _ = collector.HistoryRequests(t, c)
	require.GreaterOrEqual(t, shown, certain, "kill")
	require.LessOrEqual(t, shown, sent, "kill: nothing twice")
	sent = shown
	send(10)
}
