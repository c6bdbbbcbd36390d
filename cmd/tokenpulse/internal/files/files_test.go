// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is a file of token events with one request of a model.
func recorded(t *testing.T, model string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), model+".jsonl")
	events := `{"event":"start","stream_id":"` + model + `","time_unix_nano":"1795233292000000000","attributes":{"gen_ai.request.model":"` + model + `"}}
{"event":"chunk","stream_id":"` + model + `","time_unix_nano":"1795233292250000000"}
{"event":"end","stream_id":"` + model + `","time_unix_nano":"1795233293000000000"}
`
	require.NoError(t, os.WriteFile(path, []byte(events), 0o600))
	return path
}

// spansOf is a file with a span in each line.
func spansOf(t *testing.T, lines int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	line := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"chat"}]}]}]}`
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat(line+"\n", lines)), 0o600))
	return path
}

// Each file of a benchmark is a run. Files of spans may be parts of one.
func TestRead_NamesTheRunOfRecordings(t *testing.T) {
	one, two, spans := recorded(t, "one"), recorded(t, "two"), spansOf(t, 2)
	runs := map[string]int{}
	result, err := Read(t.Context(), []string{one, spans, two}, Options{}, func(b Batch) error {
		runs[b.Run] += b.Traces.SpanCount()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, map[string]int{one: 1, two: 1, "": 2}, runs)
	require.Equal(t, 3, result.Files)
}

// The error of the consumer ends the reading, also while the reader is ahead.
func TestRead_EndsWithTheErrorOfTheConsumer(t *testing.T) {
	full, consumed := errors.New("full"), 0
	_, err := Read(t.Context(), []string{spansOf(t, 1000)}, Options{}, func(Batch) error {
		consumed++
		return full
	})
	require.Equal(t, full, err)
	require.Equal(t, 1, consumed)
}

// Older results of vLLM have no start times, so the requests of a file seem to start at once. Twice the same file is one note.
func TestRead_NotesWhatAUserShouldKnowOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vllm.json")
	old := `{"date":"20251003-201339","model_id":"m","num_prompts":1,"input_lens":[10],"output_lens":[2],"ttfts":[0.25],"itls":[[0.05]],"generated_texts":[""],"errors":[""]}`
	require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
	result, err := Read(t.Context(), []string{path, path}, Options{Damaged: func(err error) { require.NoError(t, err) }}, func(Batch) error { return nil })
	require.NoError(t, err)
	var of []string
	for _, note := range result.Notes {
		if strings.HasPrefix(note, path) {
			of = append(of, note)
		}
	}
	require.Len(t, of, 1, result.Notes)
	require.Contains(t, of[0], "start_times")
}

func TestSize_IsUnknownOfWhatIsNoFile(t *testing.T) {
	path := spansOf(t, 1)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, 2*info.Size(), Size([]string{path, path}))
	require.Equal(t, int64(-1), Size([]string{path, "-"}))
}
