// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIs_AcceptsEachFormatAndItsBeginnings(t *testing.T) {
	for format, file := range formats(t, short(t)) {
		for end := range len(file.content) + 1 {
			require.True(t, Is(file.content[:end]), "%s, %d bytes", format, end)
		}
	}
	for _, content := range []string{
		"", "\n", "{}\n", "\ufeff{\"resourceSpans\":[]}", "{ \"resourceLogs\": []}", "{\"resourceMetrics\":[]}",
		`alue":"x"}}],"traceId":"01","spanId":"02","startTimeUnixNano":"3","name":"`, "\"}}]}\n{\"resourceSpans\":[]}",
		"\x00\x00\x00\x00\x00\x00\x00\x02\n\x00", // an empty message, and one with empty resource spans
	} {
		require.True(t, Is([]byte(content)), "%q", content)
	}
}

func TestIs_RejectsOtherKinds(t *testing.T) {
	for _, content := range []string{
		"\x89PNG\r\n\x1a\n", "PAR1\x15\x04", "\x00\x00\x01\x00\x01\x00\x10\x10", "\x00\x00\x00\x18ftypmp42", "\xff\xfe{\x00\"\x00", "\x00{\x00\"\x00r\x00e",
		"\n{\n  \"a\": 1}", "\nab", "\n\x0ahello world",
		`{"event":"start","stream_id":"s"}`, `{"metadata":{},"metrics":{}}`, `{"tokenpulse_report":1}`, `{"data":[{"traceID":"1"}]}`,
		`{"result":{"resourceSpans":[]}}`, `[{"resourceSpans":[]}]`, `{"resource":{},"scopeSpans":[{"spans":[{"traceId":"1","spanId":"2","startTimeUnixNano":"3"}]}]}`,
		`[{"traceId":"1","spanId":"2","startTimeUnixNano":"3"}]`, "receivers:\n  otlp:\n", "a,b\n1,2\n", "# HELP a b\n", "<html>", "text",
		"\x04\x00\x00\x01\x0a\x00\x0a\x00", // a length above the limit
	} {
		require.False(t, Is([]byte(content)), "%q", content)
	}
}

// A file gives the same whatever compresses it, and no content ends the reading of a file that Is accepts.
func FuzzRead(f *testing.F) {
	const limit = 1 << 20
	for _, name := range []string{"json.jsonl", "proto.bin", "json-zstd.bin", "proto-zstd.bin", "native/json-zstd.bin", "native/proto-zstd.bin"} {
		f.Add(recorded(f, name))
	}
	for _, file := range formats(f, short(f)) {
		f.Add(file.content)
	}
	for _, text := range []string{`{"resourceMetrics":[]}`, "{\"resourceSpans\":[\n", `{"resourceSpans":[{"resourceSpans"`, "\n\x02\x12\x00\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got := readLimited(t, content, limit)
		zipped := readLimited(t, gzipped(t, content), limit)
		if !isCompressed(content) { // which would be compressed twice
			require.Equal(t, got, zipped)
			accepted := Is(content[:min(len(content), 4096)])
			require.True(t, accepted || got.err != nil)
			if accepted && got.err != nil {
				require.ErrorContains(t, got.err, "has only metrics, logs or profiles")
			}
		}
		for _, damaged := range got.damaged {
			require.True(t, strings.HasPrefix(damaged, "file:"), damaged)
			require.Less(t, len(damaged), 300, "it quotes the content")
		}
	})
}

func isCompressed(content []byte) bool {
	skippable := len(content) >= 4 && bytes.Equal(content[1:4], []byte("\x2a\x4d\x18"))
	return skippable || bytes.HasPrefix(content, []byte("\x1f\x8b")) || bytes.HasPrefix(content, []byte("\x28\xb5\x2f\xfd"))
}
