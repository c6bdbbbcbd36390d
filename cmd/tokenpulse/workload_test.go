// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/play"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// entry is a line of a trace, without the hash IDs.
type entry struct {
	Timestamp    int64  `json:"timestamp"`
	InputLength  uint64 `json:"input_length"`
	OutputLength uint64 `json:"output_length"`
}

func entriesOf(t *testing.T, trace string) (all []entry) {
	t.Helper()
	for line := range strings.Lines(trace) {
		var e entry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		all = append(all, e)
	}
	return all
}

// record writes streams as a recording.
func record(t *testing.T, streams []*stream.Stream) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	file, err := os.Create(path)
	require.NoError(t, err)
	player := &play.Player{Sender: send.NewFile(file), Stats: &send.Stats{}, Live: true}
	require.NoError(t, player.Play(t.Context(), slices.Values(streams)))
	return path
}

// writeWorkload returns the trace of files, and what the command says of it.
func writeWorkload(t *testing.T, paths ...string) (path, trace, said string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "trace.jsonl")
	code, out, said := execute(t.Context(), append([]string{"workload", "-o", path}, paths...)...)
	require.Zero(t, code, said)
	require.Empty(t, out)
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, string(written), said
}

// The trace has each request of the recording that reports its tokens, and none of its text. Replayed, its arrivals and
// lengths come back.
func TestWorkload_ComesBackFromItsReplay(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "recording.jsonl")
	_, err := run(t.Context(), "generate", "--output", recording, "--requests", "400", "--rate", "30", "--seed", "7")
	require.NoError(t, err)
	var expected []entry
	first, unsized := int64(0), 0
	for _, s := range readRecording(t, recording) {
		if s.End == nil || s.End.Usage == nil {
			unsized++
			continue
		}
		if len(expected) == 0 {
			first = s.Start
		}
		at := time.Duration(s.Start - first).Round(time.Millisecond).Milliseconds()
		expected = append(expected, entry{at, *s.End.Usage.InputTokens, *s.End.Usage.OutputTokens})
	}
	slices.SortFunc(expected, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.InputLength, b.InputLength), cmp.Compare(a.OutputLength, b.OutputLength))
	})
	require.Positive(t, unsized, "cancelled and failed requests")

	path, trace, said := writeWorkload(t, recording)
	require.Equal(t, expected, entriesOf(t, trace))
	require.Contains(t, said, "of the prompt tokens were cached. In a replay, none are")
	require.Regexp(t, `(?m)^left out: `+strings.TrimSpace(jsonOf(t, unsized))+` requests without reported tokens`, said)

	again, replayedTrace, _ := writeWorkload(t, record(t, replayed(t, path)))
	require.Equal(t, trace, replayedTrace)
	require.NotEqual(t, path, again)
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestWorkload_OfSeveralFilesIsThatOfAll(t *testing.T) {
	streams := readRecording(t, demo)
	_, whole, _ := writeWorkload(t, demo)
	_, parts, _ := writeWorkload(t, record(t, streams[10:]), record(t, streams[:12]))
	require.Equal(t, whole, parts, "two requests are in both files, and count once")
}

// AIPerf's requests are seen by the client. With as many of an engine, the client's are those of all.
func TestWorkload_OfAIPerf(t *testing.T) {
	const aiperf = "../../testdata/recordings/aiperf.jsonl.gz"
	_, trace, said := writeWorkload(t, aiperf)
	require.Regexp(t, `^\d+ requests in \d+s, seen by the client\n`, said)
	_, both, said := writeWorkload(t, demo, aiperf)
	require.Equal(t, trace, both)
	require.Contains(t, said, "left out: 20 requests of other vantages, which see the same requests")
	code, out, _ := execute(t.Context(), "workload", aiperf)
	require.Zero(t, code)
	require.Equal(t, trace, out, "without -o, to standard output")
}

func TestWorkload_WithoutReportedTokensFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	code, _, problems := execute(t.Context(), "workload", writeSpans(t, 3), "-o", path)
	require.Equal(t, 1, code)
	require.Contains(t, problems, "left out: 3 requests without reported tokens of prompt and answer")
	require.Contains(t, problems, "no request has reported tokens of its prompt and its answer")
	require.NoFileExists(t, path)
}
