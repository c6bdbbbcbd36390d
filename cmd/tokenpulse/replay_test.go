// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

const conversation = "internal/workload/testdata/conversation.jsonl"

// replayed replays a trace and returns its streams by their starts.
func replayed(t *testing.T, path string, flags ...string) []*stream.Stream {
	t.Helper()
	receiver := startReceiver(t)
	out, err := run(t.Context(), append([]string{"replay", path, "--transport", "protobuf", "--endpoint", receiver.Endpoint(send.Protobuf)}, flags...)...)
	require.NoError(t, err, out)
	return slices.SortedFunc(slices.Values(receiver.Streams()), func(a, b *stream.Stream) int { return cmp.Compare(a.Start, b.Start) })
}

func TestReplay_WorkloadHasItsArrivalsAndLengths(t *testing.T) {
	before := time.Now()
	streams := replayed(t, conversation, "--service", "svc", "--model", "m", "--provider", "p")
	require.Len(t, streams, 4)
	type request struct {
		after         time.Duration
		input, output uint64
	}
	var got []request
	for _, s := range streams {
		got = append(got, request{time.Duration(s.Start - streams[0].Start), *s.End.Usage.InputTokens, *s.End.Usage.OutputTokens})
		require.Equal(t, stream.Attributes{"service.name": "svc"}, s.Resource.Attributes)
		require.Equal(t, stream.Attributes{"gen_ai.request.model": "m", "gen_ai.provider.name": "p", "gen_ai.operation.name": "chat"}, s.Attributes)
	}
	require.ElementsMatch(t, []request{{0, 13544, 71}, {0, 915, 355}, {2999 * time.Millisecond, 1053, 26}, {6 * time.Second, 8772, 1}}, got)
	require.WithinDuration(t, before, time.Unix(0, streams[3].Start), time.Minute, "the last one begins about now")
}

// A receiver that recognises repeated streams must count both replays.
func TestReplay_WorkloadTwiceAreOtherStreams(t *testing.T) {
	first, second := replayed(t, conversation), replayed(t, conversation)
	require.NotEqual(t, first[0].ID, second[0].ID)
}

func TestReplay_NamesTheLineOfADamagedWorkload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"timestamp": 0, "input_length": 5, "output_length": 0}`), 0o600))
	_, err := run(t.Context(), "replay", path)
	require.EqualError(t, err, path+": line 1: output_length is 0; supported are 1 to 1048576 tokens")
}
