// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Files of the AIPerf recording: its token events, and the numbers that AIPerf
// computed of each request. Both are written by a test of tokengen's recording
// package, from AIPerf's own export.
const (
	RecordingFile         = "recordings/aiperf.jsonl.gz"
	RecordingRequestsFile = "recordings/aiperf.requests.json"
)

// Recorded is one request of the AIPerf recording. Times are Unix nanoseconds.
type Recorded struct {
	Start, End int64
	Cancelled  bool
	Chunks     []RecordedChunk
	// OutputTokens is the reported count, reasoning included.
	OutputTokens int64
	// Computed is nil for a cancelled request.
	Computed *RecordedLatency
}

// RecordedChunk is a chunk of one token.
type RecordedChunk struct {
	Time      int64
	Reasoning bool
}

// RecordedLatency is what AIPerf computed of one request, in milliseconds.
type RecordedLatency struct {
	StreamID         string  `json:"stream_id"`
	TimeToFirstToken float64 `json:"ttft"`
	// InterTokenLatency is AIPerf's: one number per request, our TPOT.
	InterTokenLatency float64 `json:"inter_token_latency"`
	RequestLatency    float64 `json:"request_latency"`
	OutputTokens      int64   `json:"output_sequence_length"`
}

// Recording returns the requests of the AIPerf recording, in the order in which
// they started. It does not use the project's own readers.
func Recording(tb testing.TB) []*Recorded {
	tb.Helper()
	var computed []RecordedLatency
	ReadJSON(tb, RecordingRequestsFile, &computed)
	byID := map[string]*Recorded{}
	var requests []*Recorded
	for line := range bytes.Lines(Unzip(tb, Data(tb, RecordingFile))) {
		var event struct {
			Event, Channel string
			StreamID       string `json:"stream_id"`
			Time           int64  `json:"time_unix_nano,string"`
			Tokens         int
			Cancelled      bool
			Usage          struct {
				OutputTokens int64 `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal(line, &event); err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		request := byID[event.StreamID]
		switch event.Event {
		case "start":
			request = &Recorded{Start: event.Time}
			byID[event.StreamID] = request
			requests = append(requests, request)
		case "chunk":
			if event.Tokens != 1 {
				tb.Fatalf("%s: a chunk of this recording holds one token", line)
			}
			request.Chunks = append(request.Chunks, RecordedChunk{event.Time, event.Channel == "reasoning"})
		case "end":
			request.End, request.Cancelled, request.OutputTokens = event.Time, event.Cancelled, event.Usage.OutputTokens
		}
	}
	for i := range computed {
		byID[computed[i].StreamID].Computed = &computed[i]
	}
	return requests
}

// UnzipRecording writes the events of the AIPerf recording to a temporary file, for
// tokengen to replay, and returns its path.
func UnzipRecording(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "aiperf.jsonl")
	if err := os.WriteFile(path, Unzip(tb, Data(tb, RecordingFile)), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
