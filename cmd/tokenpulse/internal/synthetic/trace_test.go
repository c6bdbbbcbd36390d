// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTrace_StreamsHaveTheGivenStartsAndLengths(t *testing.T) {
	arrivals := []Arrival{
		{Input: 1, Output: 1},
		{At: time.Millisecond, Input: 131_072, Output: 4_000},
		{At: time.Millisecond, Input: 512, Output: 2},
		{At: time.Hour + 27*time.Millisecond, Input: 513, Output: 37},
	}
	config := Config{Seed: 1, Begin: begin, Service: "chat", Models: []Model{{"m", 1}}, Prefill: DefaultPrefill, TPOT: DefaultTPOT, BundleRatio: 0.3}
	streams := slices.Collect(Trace(config, slices.Values(arrivals)))
	require.Len(t, streams, len(arrivals))
	for i, s := range streams {
		require.Equal(t, begin+int64(arrivals[i].At), s.Start)
		tokens := 0
		for _, c := range s.Chunks {
			require.Greater(t, c.Time, s.Start)
			tokens += int(c.Tokens)
		}
		require.Equal(t, arrivals[i].Output, tokens)
		require.EqualValues(t, arrivals[i].Output, *s.End.Usage.OutputTokens)
		require.EqualValues(t, arrivals[i].Input, *s.End.Usage.InputTokens)
		require.Nil(t, s.End.Usage.CachedInputTokens, "a trace does not say it")
		require.Greater(t, s.End.Time, s.Chunks[len(s.Chunks)-1].Time)
	}
	// The median prefill of a prompt is linear in its length: 0.2 of 300 ms, and 0.6 ms for each token.
	require.Greater(t, streams[1].Chunks[0].Time-streams[1].Start, int64(20*time.Second))
	require.Less(t, streams[0].Chunks[0].Time-streams[0].Start, int64(time.Second))
}
