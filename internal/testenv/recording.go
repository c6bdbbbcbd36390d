// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// Files of the AIPerf recording: its token events, and the numbers that AIPerf
// computed of each request. Both are written by a test of tokenpulse's recording
// package, from AIPerf's own export.
const (
	RecordingFile         = "recordings/aiperf.jsonl.gz"
	RecordingRequestsFile = "recordings/aiperf.requests.json"
)

// RecordedLatency is what AIPerf computed of one request, in milliseconds.
type RecordedLatency struct {
	StreamID         string  `json:"stream_id"`
	TimeToFirstToken float64 `json:"ttft"`
	// InterTokenLatency is AIPerf's: one number per request, our TPOT.
	InterTokenLatency float64 `json:"inter_token_latency"`
	RequestLatency    float64 `json:"request_latency"`
	OutputTokens      int64   `json:"output_sequence_length"`
}

// UnzipRecording writes the events of the AIPerf recording to a temporary file, for
// tokenpulse to replay, and returns its path.
func UnzipRecording(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "aiperf.jsonl")
	if err := os.WriteFile(path, Unzip(tb, Data(tb, RecordingFile)), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
