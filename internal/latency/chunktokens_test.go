// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Where the tokens of a chunk are unknown, each counts as one elsewhere. The distribution would say that a service sends tokens one
// by one.
func TestAnalyze_TokensPerChunkAreMissingUnlessKnown(t *testing.T) {
	withoutThem := standard
	withoutThem.Omitted[numbers.TokensPerChunk] = true
	three := []chunk{{100, 1, timeline.Reasoning}, {150, 4, timeline.Content}, {150, 1, timeline.ToolCall}}
	for situation, test := range map[string]struct {
		options Options
		request Observed
		chunks  []chunk
		known   bool
		reason  Absence
	}{
		"every chunk is known":           {standard, Observed{}, three, true, Present},
		"more tokens reported":           {standard, Observed{OutputTokens: optional.Of[int64](9)}, three, true, Present},
		"one chunk":                      {standard, Observed{}, three[:1], true, Present},
		"no chunk":                       {standard, Observed{}, nil, false, Present},
		"frames":                         {standard, Observed{Frames: true}, three, false, NotReported},
		"each counts as one":             {standard, Observed{TokensAssumed: true}, three, false, NotReported},
		"each counts as one, with usage": {standard, Observed{TokensAssumed: true, OutputTokens: optional.Of[int64](6)}, three, false, NotReported},
		"the last ones were dropped":     {standard, Observed{LastChunksDropped: 1}, three, false, DroppedEvents},
		"the first ones were dropped":    {standard, Observed{FirstChunksDropped: 1}, three, false, DroppedEvents},
		"not wanted":                     {withoutThem, Observed{}, three, false, Present},
		"not wanted of frames":           {withoutThem, Observed{Frames: true}, three, false, Present},
	} {
		t.Run(situation, func(t *testing.T) {
			test.request.Duration = time.Second
			l := analyze(t, test.options, test.request, test.chunks)
			require.Equal(t, test.known, l.ChunkTokens != nil)
			require.Equal(t, test.reason.String(), l.Absences[2].String())
			if test.known {
				require.EqualValues(t, len(test.chunks), l.ChunkTokens.Count())
			}
		})
	}
}
