// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Recorded is one request of the AIPerf recording.
type Recorded struct {
	Stream
	Computed *testenv.RecordedLatency // nil for a cancelled request
}

// Recording returns the requests of the AIPerf recording, in the order in which they
// started. It does not use the project's own readers.
func Recording(tb testing.TB) []*Recorded {
	tb.Helper()
	byID := map[string]*Recorded{}
	var requests []*Recorded
	for line := range bytes.Lines(testenv.Unzip(tb, testenv.Data(tb, testenv.RecordingFile))) {
		event := struct {
			Event, Channel string
			StreamID       string `json:"stream_id"`
			Time           int64  `json:"time_unix_nano,string"`
			Tokens         int64
			Sequence       uint64 `json:"seq"`
			Cancelled      bool
			Usage          struct {
				Input     int64 `json:"input_tokens"`
				Output    int64 `json:"output_tokens"`
				Reasoning int64 `json:"reasoning_tokens"`
			}
		}{}
		require.NoError(tb, json.Unmarshal(line, &event), "%s", line)
		request := byID[event.StreamID]
		switch event.Event {
		case "start":
			request = &Recorded{Stream: Stream{Start: event.Time, Usage: NoUsage}}
			byID[event.StreamID] = request
			requests = append(requests, request)
		case "chunk":
			request.Chunks = append(request.Chunks, Chunk{event.Time, event.Tokens, event.Channel, event.Sequence, true})
		case "end":
			request.End, request.Cancelled = event.Time, event.Cancelled
			if !event.Cancelled {
				request.Usage.Input, request.Usage.Output, request.Usage.Reasoning = event.Usage.Input, event.Usage.Output, event.Usage.Reasoning
			}
		}
	}
	var computed []testenv.RecordedLatency
	testenv.ReadJSON(tb, testenv.RecordingRequestsFile, &computed)
	for i := range computed {
		byID[computed[i].StreamID].Computed = &computed[i]
	}
	return requests
}
