// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorded gives tests the recorded answers of LLM services, and reads them with a
// plain parser that has a whole answer in memory.
package recorded

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Answer is an answer and what its recorder read from it, see testdata/README.md.
type Answer struct {
	File            string            `json:"file"`
	RequestPath     string            `json:"request_path"`
	Request         json.RawMessage   `json:"request"`
	RequestModel    string            `json:"request_model"`
	ContentType     string            `json:"content_type"`
	ContentEncoding string            `json:"content_encoding"`
	Status          int               `json:"status"`
	ResponseHeaders map[string]string `json:"response_headers"`
	ChunkUnit       string            `json:"chunk_unit"`
	TotalChunks     int64             `json:"total_chunks"`
	Model           string            `json:"model"`
	TokenChunks     int64             `json:"token_chunks"`
	Channels        map[string]int64  `json:"channels"`
	AudioChunks     int64             `json:"audio_chunks"`
	Interrupted     bool              `json:"interrupted"`
	First           *int64            `json:"first_token_chunk_index"`
	FirstOutput     *int64            `json:"first_output_chunk_index"`
	Last            *int64            `json:"last_token_chunk_index"`
	Usage           *struct {
		Input     *int64 `json:"input_tokens"`
		Output    *int64 `json:"output_tokens"`
		Reasoning *int64 `json:"reasoning_tokens"`
		Cached    *int64 `json:"cached_input_tokens"`
	} `json:"usage"`
	UsageIsFinal  *bool                      `json:"usage_is_final"`
	UsageRaw      map[string]json.RawMessage `json:"usage_raw"`
	FinishReason  any                        `json:"finish_reason"`
	Error         string                     `json:"error"`
	IDs           []string                   `json:"ids"`
	FirstSpan     *[2]int                    `json:"first_token_chunk_span"`
	LastSpan      *[2]int                    `json:"last_token_chunk_span"`
	ServerTimings map[string]json.RawMessage `json:"server_timings"`

	Truncated bool `json:"truncated"`

	// Raw is the body as it was sent, Body without content encoding.
	Raw, Body []byte
	// Messages are those of a WebSocket's server, which the bodies hold in frames.
	Messages [][]byte
}

// Answers returns all recorded answers.
func Answers(tb testing.TB) (all []Answer) {
	tb.Helper()
	folder := filepath.Join(testenv.Root(tb), "receiver", "tokentapreceiver", "internal", "llmstream", "testdata")
	text, err := os.ReadFile(filepath.Join(folder, "INDEX.json")) //nolint:gosec // of the project
	require.NoError(tb, err)
	require.NoError(tb, json.Unmarshal(text, &all))
	require.Greater(tb, len(all), 100)
	for i := range all {
		r := &all[i]
		r.Raw, err = os.ReadFile(filepath.Join(folder, filepath.FromSlash(r.File))) //nolint:gosec // of the project
		require.NoError(tb, err)
		r.Body = r.Raw
		if r.ContentEncoding == "gzip" {
			plain, err := gzip.NewReader(bytes.NewReader(r.Body))
			require.NoError(tb, err)
			r.Body, err = io.ReadAll(plain)
			require.NoError(tb, err)
		}
		if r.ChunkUnit == "ws_message_received" {
			var frames []byte
			for line := range bytes.Lines(r.Body) {
				r.Messages = append(r.Messages, bytes.TrimSpace(line))
				frames = AppendFrame(frames, 0x81, bytes.TrimSpace(line))
			}
			r.Raw, r.Body = frames, frames
		}
	}
	return all
}

// AppendFrame appends a frame of a WebSocket server.
func AppendFrame(to []byte, first byte, payload []byte) []byte {
	to = append(to, first)
	switch n := len(payload); {
	case n < 126:
		to = append(to, byte(n))
	case n < 1<<16:
		to = binary.BigEndian.AppendUint16(append(to, 126), uint16(n))
	default:
		to = binary.BigEndian.AppendUint64(append(to, 127), uint64(n))
	}
	return append(to, payload...)
}

// MaskedFrame returns a frame of a WebSocket client.
func MaskedFrame(first byte, payload []byte) []byte {
	mask := []byte{0x5a, 0x01, 0xff, 0x80}
	frame := AppendFrame(nil, first, payload)
	frame = slices.Insert(frame, len(frame)-len(payload), mask...)
	frame[1] |= 0x80
	for i := range payload {
		frame[len(frame)-len(payload)+i] ^= mask[i%len(mask)]
	}
	return frame
}
