// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// historyRequests returns the requests of an hour, and their times to first token.
func historyRequests(t *testing.T, c *collector) (requests int, toFirst map[string]float64) {
	t.Helper()
	var now livePageAnswer
	c.askPage(t, "now?range=1h", &now)
	for _, n := range now.Requests {
		requests += n
	}
	return requests, now.Indicators["time_to_first_token"]
}

// The built Collector with storage: what the page showed is there after a clean stop, and
// after a kill at most the last seconds are missing. Percentiles are those from before.
func TestLivePage_HistorySurvivesStopAndKillWithStorage(t *testing.T) {
	t.Parallel()
	storage := t.TempDir()
	setenv(t, "STORAGE_DIRECTORY", storage)
	c := startCollector(t, example(t, "quickstart.yaml"), "--config", writeFile(t, t.TempDir(), "storage.yaml", historyStorage))
	sent := 0
	send := func(requests int) {
		t.Helper()
		sendBurst(t, c, requests)
		sent += requests
		require.Eventually(t, func() bool {
			shown, _ := historyRequests(t, c)
			return shown == sent
		}, patience, 100*time.Millisecond)
	}
	send(100)
	_, before := historyRequests(t, c)
	c.stop(t)
	c = c.again(t)
	shown, after := historyRequests(t, c)
	require.Equal(t, sent, shown, "clean stop")
	require.Equal(t, before, after)

	send(50)
	certain := sent
	// The first save from now on may have begun before the last request. The second did not.
	saved := filepath.Join(storage, "exporter_token_sli__history")
	for range 2 {
		before := committed(t, saved)
		send(10)
		waitForCommit(t, saved, before+1)
	}
	c.kill(t)
	c = c.again(t)
	shown, _ = historyRequests(t, c)
	require.GreaterOrEqual(t, shown, certain, "kill")
	require.LessOrEqual(t, shown, sent, "kill: nothing twice")
	sent = shown
	send(10)
}
