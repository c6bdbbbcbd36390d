// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A sender could otherwise forge latencies, verdicts, and exemptions from SLOs.
func TestAttributes_SendersCannotSetOurs(t *testing.T) {
	b := start(t)
	forged := `{"tokenpulse.time_to_first_token":0.001,"tokenpulse.slo.met":["a"],"tokenpulse.start.unseen":true,"kept":"yes","nested":{"tokenpulse.outcome":"kept"}}`
	line := fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d","resource":{"tokenpulse.slo.met":["a"],"service.name":"chat"},"attributes":%s}`, at(0), forged)
	end := `{"event":"end","stream_id":"s","attributes":{"tokenpulse.slo.breached":["b"]}}`
	require.Equal(t, 200, b.lines(t, line, chunkLine("s", time.Millisecond), end).status)
	got := b.sink.one(t)
	for key := range got.Attributes {
		require.Contains(t, []string{"kept", "nested", "tokenpulse.outcome", "tokenpulse.vantage", "tokenpulse.timeline"}, key)
	}
	require.Equal(t, map[string]any{"tokenpulse.outcome": "kept"}, got.Attributes["nested"])
	require.Equal(t, map[string]any{"service.name": "chat"}, got.Resource)
	requireMetric(t, b, "attributes_removed", nil, 5)
}
