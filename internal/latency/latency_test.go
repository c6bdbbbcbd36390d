// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// chunk is one arrival, in milliseconds after the request's start.
type chunk struct {
	at      float64
	tokens  uint32
	channel timeline.Channel
}

// contents returns one-token chunks of content.
func contents(milliseconds ...float64) []chunk {
	var chunks []chunk
	for _, at := range milliseconds {
		chunks = append(chunks, chunk{at, 1, timeline.Content})
	}
	return chunks
}

func pack(tb testing.TB, chunks []chunk) timeline.Walk {
	tb.Helper()
	const start = 1_795_233_292_181_556_000 // whole microseconds, the resolution of a timeline
	var line timeline.Timeline
	for _, c := range chunks {
		line.Append(start+int64(math.Round(c.at*1e6)), c.tokens, c.channel)
	}
	walk, err := timeline.Decode(line.AppendBinary(nil, start))
	require.NoError(tb, err)
	return walk
}

func analyze(t *testing.T, options Options, request Observed, chunks []chunk) *Latency {
	t.Helper()
	l, err := NewAnalyzer(options).Analyze(request, pack(t, chunks))
	require.NoError(t, err)
	return &l
}

// firstTokenAt is a reported first token.
func firstTokenAt(after time.Duration) [NumTimeSources]Milestone {
	return [NumTimeSources]Milestone{RelativeTime: {Offset: after, Known: true}}
}

var standard = Options{StallThreshold: 500 * time.Millisecond}

const ms = time.Millisecond

// want holds the expected measures of a request. Others of inEveryCase must be absent.
type want map[numbers.ID]float64

// inEveryCase are the numbers that a case checks even if it does not want them. A number that is not among them is checked where
// it is wanted, so that a new one needs no edit of cases that are about others.
var inEveryCase = []numbers.ID{
	numbers.TimeToFirstToken, numbers.TimeToFirstOutputToken, numbers.TimePerOutputToken, numbers.RequestDuration,
	numbers.QueueDuration, numbers.PrefillDuration, numbers.DecodeDuration, numbers.NetworkDuration, numbers.DecodeShare,
	numbers.OutputTokenRate, numbers.TimeToAnswer, numbers.InterTokenLatency, numbers.InterChunkLatency,
	numbers.RequestTokenRate, numbers.StallDuration, numbers.FluidityIndex,
}

// requireMeasures compares durations and rates, with a tolerance of 1e-9, relative for values above 1.
func requireMeasures(t *testing.T, expected want, l *Latency) {
	t.Helper()
	for id := range numbers.Count {
		value, wanted := expected[id]
		if m := l.Measures[id]; wanted || slices.Contains(inEveryCase, id) {
			require.Equal(t, wanted, m.Known, "%s is known", id.Attribute())
			require.InDelta(t, value, m.Value, 1e-9*max(1, value), id.Attribute())
		}
	}
}

func estimated(l *Latency) []numbers.ID {
	var list []numbers.ID
	for id := range numbers.Count {
		if l.Measures[id].Estimated && slices.Contains(inEveryCase, id) {
			list = append(list, id)
		}
	}
	return list
}

// The expected values are worked out by hand from the formulas of definitions.md.
func TestAnalyze_PerRequest(t *testing.T) {
	fluid := Options{StallThreshold: 500 * ms, Fluidity: Deadlines{FirstToken: 100 * ms, NextToken: 50 * ms}}
	after := Options{StallThreshold: 500 * ms, Denominator: AfterFirstChunk}
	tests := map[string]struct {
		options   Options
		request   Observed
		chunks    []chunk
		expected  want
		estimated []numbers.ID
	}{
		"transfer before the first token, which is not prefill": {
			request: Observed{
				Duration: 1000 * ms, FirstToken: firstTokenAt(400 * ms), OutputTokens: optional.Of[int64](13), TokensNotObserved: true,
				Queue: optional.Of(100 * ms), Transfer: optional.Of(250 * ms),
			},
			expected: want{
				numbers.TimeToFirstToken: 0.4, numbers.RequestDuration: 1, numbers.QueueDuration: 0.1, numbers.PrefillDuration: 0.05,
				numbers.TransferDuration: 0.25, numbers.DecodeDuration: 0.6, numbers.DecodeShare: 0.6 / 0.65, numbers.TimePerOutputToken: 0.05,
				numbers.OutputTokenRate: 20, numbers.RequestTokenRate: 13,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"transfer after the one token of an engine that only does prefill": {
			request: Observed{
				Duration: 500 * ms, FirstToken: firstTokenAt(400 * ms), OutputTokens: optional.Of[int64](1), TokensNotObserved: true,
				Queue: optional.Of(100 * ms), Transfer: optional.Of(50 * ms),
			},
			expected: want{
				numbers.TimeToFirstToken: 0.4, numbers.RequestDuration: 0.5, numbers.QueueDuration: 0.1, numbers.PrefillDuration: 0.3,
				numbers.TransferDuration: 0.05, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.25, numbers.RequestTokenRate: 2,
			},
			estimated: []numbers.ID{numbers.DecodeDuration, numbers.DecodeShare},
		},
		"transfer longer than the wait for the token": {
			request: Observed{
				Duration: 500 * ms, FirstToken: firstTokenAt(400 * ms), OutputTokens: optional.Of[int64](2), TokensNotObserved: true,
				Queue: optional.Of(100 * ms), Transfer: optional.Of(350 * ms),
			},
			expected: want{
				numbers.TimeToFirstToken: 0.4, numbers.RequestDuration: 0.5, numbers.QueueDuration: 0.1, numbers.PrefillDuration: 0.3,
				numbers.TransferDuration: 0.35, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.25, numbers.TimePerOutputToken: 0.1,
				numbers.OutputTokenRate: 10, numbers.RequestTokenRate: 4,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"plain stream": {
			options: standard,
			request: Observed{Duration: 250 * ms},
			chunks:  contents(100, 120, 150, 200), // gaps 20, 30, 50
			expected: want{
				numbers.RequestDuration: 0.250, numbers.TimeToFirstToken: 0.100, numbers.TimeToFirstOutputToken: 0.100,
				numbers.TimePerOutputToken: 0.1 / 3, numbers.OutputTokenRate: 30, numbers.RequestTokenRate: 16,
				numbers.PrefillDuration: 0.100, numbers.DecodeDuration: 0.100, numbers.DecodeShare: 0.5,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"queue known": {
			options: standard,
			request: Observed{Duration: 250 * ms, Queue: optional.Of(60 * ms)},
			chunks:  contents(100, 200),
			expected: want{
				numbers.RequestDuration: 0.250, numbers.TimeToFirstToken: 0.100, numbers.TimeToFirstOutputToken: 0.100,
				numbers.TimePerOutputToken: 0.1, numbers.OutputTokenRate: 10, numbers.RequestTokenRate: 8,
				numbers.QueueDuration: 0.060, numbers.PrefillDuration: 0.040, numbers.DecodeDuration: 0.100, numbers.DecodeShare: 0.1 / 0.14,
			},
		},
		"queue of zero is known": {
			options: standard,
			request: Observed{Duration: 100 * ms, Queue: optional.Of(time.Duration(0))},
			chunks:  contents(100),
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.RequestTokenRate: 10,
				numbers.QueueDuration: 0, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0, numbers.DecodeShare: 0,
			},
		},
		"queue longer than the request is rejected, and prefill is estimated": {
			options: standard,
			request: Observed{Duration: 100 * ms, Queue: optional.Of(101 * ms)},
			chunks:  contents(50),
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimeToFirstToken: 0.05, numbers.TimeToFirstOutputToken: 0.05, numbers.RequestTokenRate: 10,
				numbers.PrefillDuration: 0.05, numbers.DecodeDuration: 0, numbers.DecodeShare: 0,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"first token before scheduling: no prefill, no share": {
			options: standard,
			request: Observed{Duration: 100 * ms, Queue: optional.Of(60 * ms)},
			chunks:  contents(50),
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimeToFirstToken: 0.05, numbers.TimeToFirstOutputToken: 0.05, numbers.RequestTokenRate: 10,
				numbers.QueueDuration: 0.06, numbers.DecodeDuration: 0,
			},
		},
		"reasoning first": {
			options: standard,
			request: Observed{Duration: 500 * ms},
			chunks:  []chunk{{100, 1, timeline.Reasoning}, {200, 1, timeline.Reasoning}, {400, 1, timeline.ToolCall}, {500, 1, timeline.Content}},
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.4,
				numbers.TimePerOutputToken: 0.4 / 3, numbers.OutputTokenRate: 7.5, numbers.RequestTokenRate: 8,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.4, numbers.DecodeShare: 0.8,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"reasoning only has no time to first output token": {
			options: standard,
			request: Observed{Duration: 100 * ms},
			chunks:  []chunk{{100, 1, timeline.Reasoning}},
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimeToFirstToken: 0.1, numbers.RequestTokenRate: 10,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0, numbers.DecodeShare: 0,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"all tokens in one chunk: N is 5, but k is 1": {
			options: standard,
			request: Observed{Duration: 100 * ms},
			chunks:  []chunk{{100, 5, timeline.Content}},
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.RequestTokenRate: 50,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0, numbers.DecodeShare: 0,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"same time twice: TPOT is 0 and its rate is absent": {
			options: standard,
			request: Observed{Duration: 100 * ms},
			chunks:  contents(100, 100),
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0,
				numbers.RequestTokenRate: 20, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0, numbers.DecodeShare: 0,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"request without duration": {
			options: standard,
			chunks:  contents(0),
			expected: want{
				numbers.RequestDuration: 0, numbers.TimeToFirstToken: 0, numbers.TimeToFirstOutputToken: 0, numbers.PrefillDuration: 0, numbers.DecodeDuration: 0,
			},
			estimated: []numbers.ID{numbers.PrefillDuration},
		},
		"reported usage wins over counted tokens": {
			options: standard,
			request: Observed{Duration: 200 * ms, OutputTokens: optional.Of(int64(11))},
			chunks:  contents(100, 200),
			expected: want{
				numbers.RequestDuration: 0.2, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.01,
				numbers.OutputTokenRate: 100, numbers.RequestTokenRate: 55, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.5,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"one token reported, two chunks counted": {
			options: standard,
			request: Observed{Duration: 200 * ms, OutputTokens: optional.Of(int64(1))},
			chunks:  contents(100, 200),
			expected: want{
				numbers.RequestDuration: 0.2, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1,
				numbers.RequestTokenRate: 5, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.5,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"stalls": {
			options: standard,
			request: Observed{Duration: 3000 * ms},
			chunks:  contents(1000, 1500, 2001, 2900), // gaps 500 (not over the threshold), 501, 899
			expected: want{
				numbers.RequestDuration: 3, numbers.TimeToFirstToken: 1, numbers.TimeToFirstOutputToken: 1, numbers.TimePerOutputToken: 1.9 / 3,
				numbers.OutputTokenRate: 3 / 1.9, numbers.RequestTokenRate: 4.0 / 3, numbers.PrefillDuration: 1, numbers.DecodeDuration: 1.9,
				numbers.DecodeShare: 1.9 / 2.9, numbers.StallDuration: 1.4,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"bundled first chunk, N - 1": {
			options: standard,
			request: Observed{Duration: 200 * ms},
			chunks:  []chunk{{100, 4, timeline.Content}, {200, 2, timeline.Content}},
			expected: want{
				numbers.RequestDuration: 0.2, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.02,
				numbers.OutputTokenRate: 50, numbers.RequestTokenRate: 30, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.5,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"bundled first chunk, N - n1": {
			options: after,
			request: Observed{Duration: 200 * ms},
			chunks:  []chunk{{100, 4, timeline.Content}, {200, 2, timeline.Content}},
			expected: want{
				numbers.RequestDuration: 0.2, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.05,
				numbers.OutputTokenRate: 20, numbers.RequestTokenRate: 30, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.5,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"N - n1 falls back to N - 1 if the first chunk holds all reported tokens": {
			options: after,
			request: Observed{Duration: 200 * ms, OutputTokens: optional.Of(int64(5))},
			chunks:  []chunk{{100, 5, timeline.Content}, {200, 1, timeline.Content}},
			expected: want{
				numbers.RequestDuration: 0.2, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.025,
				numbers.OutputTokenRate: 40, numbers.RequestTokenRate: 25, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.5,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"N - n1 falls back to N - 1 if the first chunk holds more than the reported tokens": {
			options: after,
			request: Observed{Duration: 200 * ms, OutputTokens: optional.Of(int64(3))},
			chunks:  []chunk{{100, 5, timeline.Content}, {200, 1, timeline.Content}},
			expected: want{
				numbers.RequestDuration: 0.2, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.05,
				numbers.OutputTokenRate: 20, numbers.RequestTokenRate: 15, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.5,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"no chunks and no usage": {
			options:  standard,
			request:  Observed{Duration: 300 * ms},
			expected: want{numbers.RequestDuration: 0.3, numbers.RequestTokenRate: 0},
		},
		"usage without chunks": {
			options:  standard,
			request:  Observed{Duration: 500 * ms, OutputTokens: optional.Of(int64(10))},
			expected: want{numbers.RequestDuration: 0.5, numbers.RequestTokenRate: 20},
		},
		"no token events: decode ends with the request": {
			options: standard,
			request: Observed{Duration: 500 * ms, FirstToken: firstTokenAt(100 * ms), OutputTokens: optional.Of(int64(11))},
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimePerOutputToken: 0.04, numbers.OutputTokenRate: 25,
				numbers.RequestTokenRate: 22, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.4, numbers.DecodeShare: 0.8,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"no token events and no usage: N is unknown": {
			options: standard,
			request: Observed{Duration: 500 * ms, FirstToken: firstTokenAt(100 * ms)},
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.4, numbers.DecodeShare: 0.8,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare},
		},
		"chunks dropped, usage reported": {
			options: standard,
			request: Observed{Duration: 500 * ms, LastChunksDropped: 8, OutputTokens: optional.Of(int64(11)), Queue: optional.Of(50 * ms)},
			chunks:  contents(100, 120),
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.04, numbers.OutputTokenRate: 25,
				numbers.RequestTokenRate: 22, numbers.QueueDuration: 0.05, numbers.PrefillDuration: 0.05, numbers.DecodeDuration: 0.4, numbers.DecodeShare: 0.4 / 0.45,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"chunks dropped, no usage: N is at least counted + dropped": {
			options: standard,
			request: Observed{Duration: 500 * ms, LastChunksDropped: 3, Queue: optional.Of(50 * ms)},
			chunks:  contents(100, 120),
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.1, numbers.OutputTokenRate: 10,
				numbers.RequestTokenRate: 10, numbers.QueueDuration: 0.05, numbers.PrefillDuration: 0.05, numbers.DecodeDuration: 0.4, numbers.DecodeShare: 0.4 / 0.45,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate, numbers.RequestTokenRate},
		},
		"negative gap is left out of the gaps, not of TPOT": {
			options: standard,
			request: Observed{Duration: 400 * ms},
			chunks:  contents(100, 200, 150, 400),
			expected: want{
				numbers.RequestDuration: 0.4, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.TimePerOutputToken: 0.1, numbers.OutputTokenRate: 10,
				numbers.RequestTokenRate: 10, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.3, numbers.DecodeShare: 0.75,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"last chunk before the first": {
			options: standard,
			request: Observed{Duration: 400 * ms},
			chunks:  contents(200, 100),
			expected: want{
				numbers.RequestDuration: 0.4, numbers.TimeToFirstToken: 0.2, numbers.TimeToFirstOutputToken: 0.2, numbers.RequestTokenRate: 5, numbers.PrefillDuration: 0.2,
			},
			estimated: []numbers.ID{numbers.PrefillDuration},
		},
		"first chunk before the start": {
			options: standard,
			request: Observed{Duration: 400 * ms},
			chunks:  contents(-5, 95),
			expected: want{
				numbers.RequestDuration: 0.4, numbers.TimePerOutputToken: 0.1, numbers.OutputTokenRate: 10, numbers.RequestTokenRate: 5, numbers.DecodeDuration: 0.1,
			},
		},
		"all chunks after the end": {
			options: standard,
			request: Observed{Duration: 100 * ms},
			chunks:  contents(150, 160),
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimePerOutputToken: 0.01, numbers.OutputTokenRate: 100, numbers.RequestTokenRate: 20, numbers.DecodeDuration: 0.01,
			},
		},
		"end before the start": {
			options:  standard,
			request:  Observed{Duration: -1 * ms},
			chunks:   contents(10, 20),
			expected: want{},
		},
		"request of a hundred years: a timestamp was never set": {
			options: standard,
			request: Observed{Duration: 876_000 * time.Hour},
			chunks:  contents(100, 200, 3.2e12),
			// The last gap and every quantity that ends with it would last a century, too.
			expected:  want{numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.PrefillDuration: 0.1},
			estimated: []numbers.ID{numbers.PrefillDuration},
		},
		"negative number of reported tokens is rejected": {
			options: standard,
			request: Observed{Duration: 100 * ms, OutputTokens: optional.Of(int64(-7))},
			chunks:  contents(100),
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimeToFirstToken: 0.1, numbers.TimeToFirstOutputToken: 0.1, numbers.RequestTokenRate: 10,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0, numbers.DecodeShare: 0,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"fluidity: first token 40 ms early, two within the slack, one late": {
			options: fluid,
			request: Observed{Duration: 500 * ms, Queue: optional.Of(time.Duration(0))},
			// Slack 40, 30, 20. The last gap less the slack is 180, which misses three deadlines of 50.
			chunks: contents(60, 120, 180, 380),
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.06, numbers.TimeToFirstOutputToken: 0.06, numbers.TimePerOutputToken: 0.32 / 3,
				numbers.OutputTokenRate: 3 / 0.32, numbers.RequestTokenRate: 8, numbers.QueueDuration: 0, numbers.PrefillDuration: 0.06, numbers.DecodeDuration: 0.32,
				numbers.DecodeShare: 0.32 / 0.38, numbers.FluidityIndex: 0.5,
			},
		},
		"fluidity is absent without a plausible first token": {
			options: fluid,
			request: Observed{Duration: 100 * ms, Queue: optional.Of(time.Duration(0))},
			chunks:  contents(-1, 49),
			expected: want{
				numbers.RequestDuration: 0.1, numbers.TimePerOutputToken: 0.05, numbers.OutputTokenRate: 20, numbers.RequestTokenRate: 20,
				numbers.QueueDuration: 0, numbers.DecodeDuration: 0.05,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := analyze(t, test.options, test.request, test.chunks)
			requireMeasures(t, test.expected, l)
			require.Equal(t, test.estimated, estimated(l))
		})
	}
}

func TestAnalyze_Distributions(t *testing.T) {
	dropped := analyze(t, standard, Observed{Duration: 500 * ms, LastChunksDropped: 1}, contents(100, 120))
	require.True(t, dropped.Measures[numbers.InterTokenMean].Estimated, "a part of the gaps only estimates the distribution")
	require.True(t, dropped.Measures[numbers.InterChunkMean].Estimated)

	// Gaps 90 ms with 3 tokens, 40 ms with 1: ITL 30, 30, 30, 40 and ICL 90, 40.
	chunks := []chunk{{100, 7, timeline.Content}, {190, 3, timeline.Content}, {230, 1, timeline.Content}}
	l := analyze(t, standard, Observed{Duration: 230 * ms}, chunks)
	require.InDelta(t, 0.0325, l.Measures[numbers.InterTokenMean].Value, 1e-12)
	require.InEpsilon(t, 0.030, l.Measures[numbers.InterTokenP50].Value, 0.0055)
	require.InEpsilon(t, 0.040, l.Measures[numbers.InterTokenP95].Value, 0.0055)
	require.InDelta(t, 0.040, l.Measures[numbers.InterTokenMax].Value, 1e-12)
	require.InDelta(t, 0.065, l.Measures[numbers.InterChunkMean].Value, 1e-12)
	require.InEpsilon(t, 0.040, l.Measures[numbers.InterChunkP50].Value, 0.0055)
	require.InDelta(t, 0.090, l.Measures[numbers.InterChunkMax].Value, 1e-12)
	require.False(t, l.Measures[numbers.InterTokenMean].Estimated)

	require.Zero(t, analyze(t, standard, Observed{Duration: 1 * ms}, contents(1)).Gaps(numbers.InterTokenMean), "k <= 1")
	require.Zero(t, analyze(t, standard, Observed{Duration: 1 * ms}, contents(1, 0)).Gaps(numbers.InterTokenMean), "no plausible gap")

	zero := analyze(t, standard, Observed{Duration: 1 * ms}, contents(1, 1)).Gaps(numbers.InterTokenMean)
	for _, m := range zero {
		require.Equal(t, Measure{Known: true}, m, "a gap of 0 is a sample of 0")
	}
}

func TestAnalyze_HasChunkGapsOnceLaterChunkIsBundled(t *testing.T) {
	tests := map[string]struct {
		tokens []uint32
		same   bool
	}{
		"one token each":       {[]uint32{1, 1, 1}, true},
		"first chunk bundled":  {[]uint32{9, 1, 1}, true},
		"last chunk bundled":   {[]uint32{1, 1, 2}, false},
		"middle chunk bundled": {[]uint32{1, 2, 1}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var chunks []chunk
			for i, n := range test.tokens {
				chunks = append(chunks, chunk{float64(i * 20), n, timeline.Content})
			}
			l := analyze(t, standard, Observed{Duration: time.Second}, chunks)
			gaps := l.TokenGaps
			if require.Equal(t, test.same, l.ChunkGaps == nil); !test.same {
				gaps = l.ChunkGaps
			}
			require.EqualValues(t, 2, gaps.Count())
			require.InDelta(t, 0.040, gaps.Sum(), 1e-12)
		})
	}
}

func TestAnalyze_Counts(t *testing.T) {
	type counts = map[numbers.ID]int64
	tests := map[string]struct {
		request  Observed
		chunks   []chunk
		expected counts
		rejected [NumReasons]int64
	}{
		"fewer reported than counted": {
			request:  Observed{Duration: time.Second, OutputTokens: optional.Of(int64(1))},
			chunks:   contents(1, 2, 3),
			expected: counts{numbers.ChunkCount: 3, numbers.TokenCountMismatch: -2},
		},
		"more reported than counted": {
			request:  Observed{Duration: time.Second, OutputTokens: optional.Of(int64(5))},
			chunks:   contents(1, 2, 3),
			expected: counts{numbers.ChunkCount: 3, numbers.TokenCountMismatch: 2},
		},
		"no mismatch if chunks were dropped": {
			request:  Observed{Duration: time.Second, OutputTokens: optional.Of(int64(5)), LastChunksDropped: 4},
			chunks:   contents(1, 2, 3),
			expected: counts{numbers.ChunkCount: 7},
		},
		"no mismatch without chunks": {
			request:  Observed{Duration: time.Second, OutputTokens: optional.Of(int64(5))},
			expected: counts{numbers.ChunkCount: 0},
		},
		"chunk count unknown without token events": {
			request:  Observed{Duration: time.Second, FirstToken: firstTokenAt(time.Millisecond)},
			expected: counts{},
		},
		"stalls": {
			request:  Observed{Duration: 3 * time.Second},
			chunks:   contents(0, 501, 1001, 1600),
			expected: counts{numbers.ChunkCount: 4, numbers.TokenCount: 4, numbers.StallCount: 2},
		},
		"counted tokens of a request without duration": {
			request:  Observed{LastChunksDropped: 3},
			chunks:   []chunk{{0, 5, timeline.Content}, {0, 2, timeline.Content}},
			expected: counts{numbers.ChunkCount: 5, numbers.TokenCount: 10},
		},
		"clock goes back twice": {
			request:  Observed{Duration: time.Second},
			chunks:   contents(10, 5, 20, 15, 30),
			expected: counts{numbers.ChunkCount: 5, numbers.TokenCount: 5, numbers.ClockAnomalies: 2}, rejected: [NumReasons]int64{Negative: 2},
		},
		"first chunk before the start": { // TTFT, TTFO and prefill are negative
			request:  Observed{Duration: time.Second},
			chunks:   contents(-10, 5),
			expected: counts{numbers.ChunkCount: 2, numbers.TokenCount: 2, numbers.ClockAnomalies: 1}, rejected: [NumReasons]int64{Negative: 3},
		},
		"gap longer than the request, end before the last chunk": {
			request:  Observed{Duration: 100 * ms},
			chunks:   contents(10, 120), // gap and decode: 110
			expected: counts{numbers.ChunkCount: 2, numbers.TokenCount: 2, numbers.ClockAnomalies: 1}, rejected: [NumReasons]int64{LongerThanRequest: 2},
		},
		"end before the start, no chunks": {
			request:  Observed{Duration: -5},
			expected: counts{numbers.ChunkCount: 0, numbers.ClockAnomalies: 1}, rejected: [NumReasons]int64{Negative: 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := analyze(t, standard, test.request, test.chunks)
			got := counts{}
			for _, id := range []numbers.ID{numbers.ChunkCount, numbers.TokenCount, numbers.StallCount, numbers.TokenCountMismatch, numbers.ClockAnomalies} {
				if l.Measures[id].Known {
					got[id] = l.Count(id)
				}
			}
			require.Equal(t, test.expected, got)
			require.Equal(t, test.rejected, l.Rejected)
		})
	}
}

func TestAnalyze_Outcome(t *testing.T) {
	one := contents(1)
	tests := map[string]struct {
		request  Observed
		chunks   []chunk
		expected string
	}{
		"reported success":                    {Observed{Outcome: "success"}, one, names.OutcomeSuccess},
		"not reported":                        {Observed{}, one, names.OutcomeSuccess},
		"unknown value reported":              {Observed{Outcome: "fine"}, one, names.OutcomeSuccess},
		"reported error":                      {Observed{Outcome: "error"}, one, names.OutcomeError},
		"status error":                        {Observed{Failed: true}, one, names.OutcomeError},
		"reported success, status error":      {Observed{Outcome: "success", Failed: true}, one, names.OutcomeError},
		"cancelled before the first token":    {Observed{Outcome: "cancelled"}, nil, names.OutcomeCancelled},
		"cancelled, status error":             {Observed{Outcome: "cancelled", Failed: true}, one, names.OutcomeCancelled},
		"incomplete":                          {Observed{Outcome: "incomplete"}, one, names.OutcomeIncomplete},
		"incomplete without a token":          {Observed{Outcome: "incomplete"}, nil, names.OutcomeIncomplete},
		"success without tokens":              {Observed{Outcome: "success"}, nil, names.OutcomeError},
		"success with usage only":             {Observed{Outcome: "success", OutputTokens: optional.Of(int64(9))}, nil, names.OutcomeSuccess},
		"success with usage of no tokens":     {Observed{Outcome: "success", OutputTokens: optional.Of(int64(0))}, nil, names.OutcomeError},
		"complete without a token":            {Observed{Outcome: "success", Tokenless: true}, nil, names.OutcomeSuccess},
		"aborted, seen by the engine":         {Observed{Reason: outcome.Reason{Name: "abort", Meaning: outcome.Aborted}, InEngine: true}, one, names.OutcomeCancelled},
		"aborted, seen by a client":           {Observed{Reason: outcome.Reason{Name: "abort", Meaning: outcome.Aborted}}, one, names.OutcomeError},
		"success with a reported first token": {Observed{Outcome: "success", FirstToken: firstTokenAt(ms)}, nil, names.OutcomeSuccess},
		"tokens not observed":                 {Observed{TokensNotObserved: true}, nil, names.OutcomeSuccess},
		"tokens not observed, status error":   {Observed{TokensNotObserved: true, Failed: true}, nil, names.OutcomeError},
		"success with all chunks dropped":     {Observed{Outcome: "success", LastChunksDropped: 3}, nil, names.OutcomeSuccess},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.request.Duration = time.Second
			l := analyze(t, standard, test.request, test.chunks)
			require.Equal(t, test.expected, l.Outcome)
			require.Equal(t, len(test.chunks) > 0 || test.request.FirstToken[RelativeTime].Known, l.Measures[numbers.TimeToFirstToken].Known,
				"time to first token is kept whatever the outcome")
		})
	}
}

func TestAnalyze_MalformedTimeline(t *testing.T) {
	var line timeline.Timeline
	line.Append(0, 1, timeline.Content)
	line.Append(1_000_000, 1, timeline.Content)
	stored := line.AppendBinary(nil, 0)
	for _, stored := range [][]byte{stored[:len(stored)-1], append(stored, 0)} {
		walk, err := timeline.Decode(stored)
		require.NoError(t, err)
		_, err = NewAnalyzer(standard).Analyze(Observed{Duration: time.Second}, walk)
		require.Error(t, err)
	}
}

func TestAnalyzer_KeepsNothingOfEarlierRequests(t *testing.T) {
	a := NewAnalyzer(Options{StallThreshold: ms, Fluidity: Deadlines{FirstToken: ms, NextToken: ms}})
	before := []chunk{{1, 3, timeline.Content}, {500, 5, timeline.ToolCall}, {400, 2, timeline.Content}}
	_, err := a.Analyze(Observed{Duration: time.Second, OutputTokens: optional.Of(int64(4))}, pack(t, before))
	require.NoError(t, err)
	l, err := a.Analyze(Observed{Duration: time.Second}, pack(t, nil))
	require.NoError(t, err)
	require.Equal(t, analyze(t, standard, Observed{Duration: time.Second}, nil), &l)
	require.Nil(t, l.TokenGaps)
	require.Nil(t, l.ChunkGaps)
}

// Truncation to ticks must neither cause clock anomalies nor push a value over a limit
// that it equals.
func TestAnalyze_TruncatedNanosecondsDoNotCrossLimits(t *testing.T) {
	options := standard
	options.Fluidity = Deadlines{FirstToken: 100 * time.Millisecond, NextToken: 50 * time.Millisecond}
	options.StallThreshold = 50 * time.Millisecond
	for nanos := range int64(2000) {
		start := 1_795_233_292_181_556_000 + nanos
		var line timeline.Timeline
		end := start
		for i := range int64(3) {
			end = start + int64(100*time.Millisecond) + i*int64(50*time.Millisecond)
			line.Append(end, 1, timeline.Content)
		}
		walk, err := timeline.Decode(line.AppendBinary(nil, start))
		require.NoError(t, err)
		l, err := NewAnalyzer(options).Analyze(Observed{Duration: time.Duration(end - start)}, walk)
		require.NoError(t, err)
		require.Zero(t, l.Count(numbers.ClockAnomalies))
		require.Equal(t, [NumReasons]int64{}, l.Rejected)
		require.Zero(t, l.Count(numbers.StallCount))
		require.Equal(t, 0.1, l.Measures[numbers.TimeToFirstToken].Value)
		require.InDelta(t, 0.05, l.Measures[numbers.TimePerOutputToken].Value, 1e-6)
		require.Equal(t, 1.0, l.Measures[numbers.FluidityIndex].Value)
	}
}

func TestAnalyze_LastChunkAtTheEnd(t *testing.T) {
	const start = 1_795_233_292_181_556_700
	var line timeline.Timeline
	line.Append(start, 1, timeline.Reasoning)
	line.Append(start+120_000_600, 1, timeline.ToolCall)
	walk, err := timeline.Decode(line.AppendBinary(nil, start))
	require.NoError(t, err)
	l, err := NewAnalyzer(standard).Analyze(Observed{Duration: 120_000_600}, walk)
	require.NoError(t, err)
	require.Zero(t, l.Count(numbers.ClockAnomalies))
	require.InDelta(t, 0.1200006, l.Measures[numbers.TimeToFirstOutputToken].Value, 1e-6)
	require.InDelta(t, 0.1200006, l.Measures[numbers.InterChunkMax].Value, 1e-6)
}

// arriving returns a walk over one-token chunks, in nanoseconds after the start.
func arriving(t *testing.T, start int64, after ...int64) timeline.Walk {
	t.Helper()
	var line timeline.Timeline
	for _, nanos := range after {
		line.Append(start+nanos, 1, timeline.Content)
	}
	walk, err := timeline.Decode(line.AppendBinary(nil, start))
	require.NoError(t, err)
	return walk
}

// A stall that spans the whole request may exceed it by part of a tick.
func TestAnalyze_StallFromStartToEndIsAccepted(t *testing.T) {
	const start = 1_795_233_292_000_000_900
	l, err := NewAnalyzer(standard).Analyze(Observed{Duration: 599_999_200}, arriving(t, start, 0, 599_999_200))
	require.NoError(t, err)
	require.EqualValues(t, 1, l.Count(numbers.StallCount))
	require.Equal(t, Measure{Value: 0.5999992, Known: true}, l.Measures[numbers.StallDuration])
	require.Equal(t, [NumReasons]int64{}, l.Rejected)
}

// Truncation explains less than a tick: stalls a whole tick longer are rejected.
func TestAnalyze_StallsLongerThanTheRequestAreRejected(t *testing.T) {
	const start = 1_795_233_292_000_000_000
	l, err := NewAnalyzer(standard).Analyze(Observed{Duration: 1_199_999_000}, arriving(t, start, 0, 600_000_000, 1_200_000_000))
	require.NoError(t, err)
	require.Zero(t, l.Measures[numbers.StallDuration])
	require.InDelta(t, 0.6, l.Measures[numbers.InterChunkMax].Value, 1e-9, "each gap alone is plausible")
}

// Every stream starts at 0; the threshold is 500 ms.
func TestAnalyze_WaitBeforeACancellationIsAStall(t *testing.T) {
	for situation, test := range map[string]struct {
		request Observed
		chunks  []chunk
		hung    bool
		count   int64
		seconds float64
	}{
		"longer than the threshold": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 900 * ms}, contents(100, 150), true, 1, 0.75,
		},
		"equal to the threshold": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 650 * ms}, contents(100, 150), false, 0, 0,
		},
		"after another stall": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 2000 * ms}, contents(100, 700, 800), true, 2, 1.8,
		},
		"after the only token": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 900 * ms}, contents(100), true, 1, 0.8,
		},
		"short, after the only token": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 200 * ms}, contents(100), false, 0, 0,
		},
		"without a token": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 9000 * ms}, nil, false, 0, 0,
		},
		"after a reported last token": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 900 * ms, LastToken: optional.Of(200 * ms)}, nil, true, 1, 0.7,
		},
		"after dropped chunks": {
			Observed{Outcome: names.OutcomeCancelled, Duration: 900 * ms, LastChunksDropped: 1}, contents(100, 150), false, 0, 0,
		},
		"of a stream without an end": {
			Observed{Outcome: names.OutcomeIncomplete, Duration: 900 * ms}, contents(100, 150), false, 0, 0,
		},
		"of a failed request": {
			Observed{Failed: true, Duration: 900 * ms}, contents(100, 150), false, 0, 0,
		},
		"of a success": {
			Observed{Duration: 900 * ms}, contents(100, 150), false, 0, 0,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			l := analyze(t, standard, test.request, test.chunks)
			require.Equal(t, test.hung, l.StalledAtEnd)
			require.Equal(t, test.count > 0, l.Measures[numbers.StallDuration].Known)
			require.InDelta(t, test.seconds, l.Measures[numbers.StallDuration].Value, 1e-12)
			require.Equal(t, test.count, l.Count(numbers.StallCount))
			if len(test.chunks) > 0 {
				require.LessOrEqual(t, l.Measures[numbers.InterChunkMax].Value, 0.6, "the wait is not a gap between chunks")
			}
		})
	}
}

// A negative duration of less than a tick gets no tolerance.
func TestAnalyze_NoStallsIfTheEndIsBeforeTheStart(t *testing.T) {
	l, err := NewAnalyzer(standard).Analyze(Observed{Duration: -500}, arriving(t, 1_795_233_292_000_000_000, 0, 0))
	require.NoError(t, err)
	require.Zero(t, l.Measures[numbers.StallDuration])
	require.EqualValues(t, 1, l.Rejected[Negative], "only the request's duration")
}

func TestAnalyze_GapLongerThanTheRequestIsRejected(t *testing.T) {
	const start = 1_795_233_292_000_000_000
	for _, test := range []struct {
		duration time.Duration
		accepted bool
	}{{20_000_000, true}, {19_999_001, true}, {19_999_000, false}} {
		a := NewAnalyzer(standard)
		l, err := a.Analyze(Observed{Duration: test.duration}, arriving(t, start, 0, 20_000_000))
		require.NoError(t, err)
		require.Equal(t, test.accepted, l.TokenGaps != nil, test.duration)
	}
}

// Each chunk counts as one token, though it may hold more: the time between chunks is exact, and
// everything per token is a bound. A reported number of tokens makes it exact.
func TestAnalyze_AssumedTokensMakeEverythingPerTokenAnEstimate(t *testing.T) {
	request := Observed{Duration: time.Second, TokensAssumed: true}
	perToken := []numbers.ID{
		numbers.TimePerOutputToken, numbers.OutputTokenRate, numbers.RequestTokenRate, numbers.TokenCount, numbers.InterTokenMean,
	}
	for name, chunks := range map[string][]chunk{"chunks of one": contents(100, 200, 400), "bundled": {{at: 100, tokens: 1}, {at: 200, tokens: 2}, {at: 400, tokens: 1}}} {
		t.Run(name, func(t *testing.T) {
			l := analyze(t, standard, request, chunks)
			for _, id := range perToken {
				require.True(t, l.Measures[id].Known && l.Measures[id].Estimated, id.Name())
			}
			for _, id := range []numbers.ID{numbers.TimeToFirstToken, numbers.DecodeDuration, numbers.InterChunkMean} {
				require.True(t, l.Measures[id].Known && !l.Measures[id].Estimated, id.Name())
			}
			require.InDelta(t, 0.15, l.Measures[numbers.InterChunkMean].Value, 1e-12) // (0.1+0.2)/2
		})
	}
	request.OutputTokens = optional.Of(int64(7))
	l := analyze(t, standard, request, contents(100, 200, 400))
	for _, id := range perToken {
		require.False(t, l.Measures[id].Estimated, id.Name())
	}
	require.InDelta(t, 0.05, l.Measures[numbers.TimePerOutputToken].Value, 1e-12) // 0.3/(7-1)
}
