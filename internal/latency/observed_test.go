// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// Observations of instrumentations that do not record every token. The expected
// values are worked out by hand from the formulas of definitions.md.
func TestAnalyze_ReportedObservations(t *testing.T) {
	tests := map[string]struct {
		request   Observed
		chunks    []chunk
		expected  want
		estimated []numbers.ID
	}{
		"duration and usage only": {
			request:  Observed{Duration: 500 * ms, TokensNotObserved: true, OutputTokens: optional.Of(int64(10))},
			expected: want{numbers.RequestDuration: 0.5, numbers.RequestTokenRate: 20},
		},
		"duration only": {
			request:  Observed{Duration: 500 * ms, TokensNotObserved: true},
			expected: want{numbers.RequestDuration: 0.5},
		},
		"first token reported by a frame: all that depends on it is estimated": {
			request: Observed{
				Duration: 500 * ms, TokensNotObserved: true, OutputTokens: optional.Of(int64(11)),
				FirstToken: [NumTimeSources]Milestone{AbsoluteTime: {Offset: 100 * ms, Known: true, Estimated: true}},
			},
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimePerOutputToken: 0.04, numbers.OutputTokenRate: 25, numbers.RequestTokenRate: 22,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.4, numbers.DecodeShare: 0.8,
			},
			estimated: []numbers.ID{numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"implausible times are skipped for the next source": {
			request: Observed{
				Duration: 500 * ms, TokensNotObserved: true,
				FirstToken: [NumTimeSources]Milestone{
					RelativeTime: {Offset: 501 * ms, Known: true}, AbsoluteTime: {Offset: -ms, Known: true}, Event: {Offset: 100 * ms, Known: true},
				},
			},
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.4, numbers.DecodeShare: 0.8,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare},
		},
		"last token reported": {
			request: Observed{
				Duration: 500 * ms, TokensNotObserved: true, OutputTokens: optional.Of(int64(11)), FirstToken: firstTokenAt(100 * ms), LastToken: optional.Of(300 * ms),
			},
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimePerOutputToken: 0.02, numbers.OutputTokenRate: 50, numbers.RequestTokenRate: 22,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.2, numbers.DecodeShare: 0.2 / 0.3,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeShare},
		},
		"phases reported by an engine take precedence, and TPOT is exact": {
			request: Observed{
				Duration: time.Second, TokensNotObserved: true, OutputTokens: optional.Of(int64(11)), FirstToken: firstTokenAt(300 * ms),
				Queue: optional.Of(50 * ms), Prefill: optional.Of(200 * ms), Decode: optional.Of(600 * ms),
			},
			expected: want{
				numbers.RequestDuration: 1, numbers.TimeToFirstToken: 0.3, numbers.TimePerOutputToken: 0.06, numbers.OutputTokenRate: 10 / 0.6, numbers.RequestTokenRate: 11,
				numbers.QueueDuration: 0.05, numbers.PrefillDuration: 0.2, numbers.DecodeDuration: 0.6, numbers.DecodeShare: 0.75,
			},
		},
		"prefill of an engine that includes the queue": {
			request: Observed{
				Duration: time.Second, TokensNotObserved: true, FirstToken: firstTokenAt(300 * ms), Prefill: optional.Of(300 * ms), PrefillEstimated: true,
			},
			expected: want{
				numbers.RequestDuration: 1, numbers.TimeToFirstToken: 0.3, numbers.PrefillDuration: 0.3, numbers.DecodeDuration: 0.7, numbers.DecodeShare: 0.7,
			},
			estimated: []numbers.ID{numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare},
		},
		"decode of a gateway that includes the network": {
			request: Observed{
				Duration: time.Second, TokensNotObserved: true, Decode: optional.Of(600 * ms), DecodeEstimated: true, OutputTokens: optional.Of(int64(11)),
			},
			expected: want{
				numbers.RequestDuration: 1, numbers.DecodeDuration: 0.6, numbers.TimePerOutputToken: 0.06, numbers.OutputTokenRate: 10 / 0.6, numbers.RequestTokenRate: 11,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.DecodeDuration, numbers.OutputTokenRate},
		},
		"phases outside the request are rejected": {
			request: Observed{
				Duration: 400 * ms, TokensNotObserved: true, Queue: optional.Of(-ms), Prefill: optional.Of(401 * ms), Decode: optional.Of(time.Hour),
			},
			expected: want{numbers.RequestDuration: 0.4},
		},
		"frames and usage: no output channel, all estimated": {
			request: Observed{Duration: 500 * ms, Frames: true, TokensNotObserved: true, OutputTokens: optional.Of(int64(3))},
			chunks:  contents(100, 200, 220, 260, 300), // role, three tokens, finish
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimePerOutputToken: 0.1, numbers.OutputTokenRate: 10, numbers.RequestTokenRate: 6,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.2, numbers.DecodeShare: 0.2 / 0.3,
			},
			estimated: []numbers.ID{numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"frames without usage: each counts as a token": {
			request: Observed{Duration: 500 * ms, Frames: true, TokensNotObserved: true},
			chunks:  contents(100, 200, 220, 260, 300),
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.1, numbers.TimePerOutputToken: 0.05, numbers.OutputTokenRate: 20, numbers.RequestTokenRate: 10,
				numbers.PrefillDuration: 0.1, numbers.DecodeDuration: 0.2, numbers.DecodeShare: 0.2 / 0.3,
			},
			estimated: []numbers.ID{
				numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate, numbers.RequestTokenRate,
			},
		},
		"frames and a reported first token: it takes precedence over the first frame": {
			request: Observed{Duration: 500 * ms, Frames: true, TokensNotObserved: true, OutputTokens: optional.Of(int64(3)), FirstToken: firstTokenAt(200 * ms)},
			chunks:  contents(100, 200, 220, 260, 300),
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.2, numbers.TimePerOutputToken: 0.05, numbers.OutputTokenRate: 20, numbers.RequestTokenRate: 6,
				numbers.PrefillDuration: 0.2, numbers.DecodeDuration: 0.1, numbers.DecodeShare: 0.1 / 0.3,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"oldest frames dropped: no first token and no decode": {
			request:  Observed{Duration: 500 * ms, Frames: true, TokensNotObserved: true, FirstChunksDropped: 7, OutputTokens: optional.Of(int64(11))},
			chunks:   contents(100, 200, 220),
			expected: want{numbers.RequestDuration: 0.5, numbers.RequestTokenRate: 22},
		},
		"oldest frames dropped, first token reported": {
			request: Observed{
				Duration: 500 * ms, Frames: true, TokensNotObserved: true, FirstChunksDropped: 7, OutputTokens: optional.Of(int64(11)), FirstToken: firstTokenAt(20 * ms),
			},
			chunks: contents(100, 200, 220),
			expected: want{
				numbers.RequestDuration: 0.5, numbers.TimeToFirstToken: 0.02, numbers.TimePerOutputToken: 0.02, numbers.OutputTokenRate: 50, numbers.RequestTokenRate: 22,
				numbers.PrefillDuration: 0.02, numbers.DecodeDuration: 0.2, numbers.DecodeShare: 0.2 / 0.22,
			},
			estimated: []numbers.ID{numbers.TimePerOutputToken, numbers.PrefillDuration, numbers.DecodeDuration, numbers.DecodeShare, numbers.OutputTokenRate},
		},
		"start not seen: no quantity counts from it": {
			request: Observed{Duration: 200 * ms, StartUnknown: true, Queue: optional.Of(time.Duration(0))},
			chunks:  contents(0, 20, 60),
			expected: want{
				numbers.TimePerOutputToken: 0.03, numbers.OutputTokenRate: 1 / 0.03, numbers.DecodeDuration: 0.06,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := analyze(t, standard, test.request, test.chunks)
			requireMeasures(t, test.expected, l)
			require.Equal(t, test.estimated, estimated(l))
		})
	}
}

func TestAnalyze_CachedInputShare(t *testing.T) {
	known := optional.Of[int64]
	for situation, test := range map[string]struct {
		input, cached optional.Value[int64]
		want          Measure
	}{
		"a quarter":                {known(400), known(100), Measure{Value: 0.25, Known: true}},
		"nothing cached":           {known(400), known(0), Measure{Known: true}},
		"all cached":               {known(400), known(400), Measure{Value: 1, Known: true}},
		"no report about caching":  {known(400), optional.Value[int64]{}, Measure{}},
		"no input tokens reported": {optional.Value[int64]{}, known(100), Measure{}},
		"an empty prompt":          {known(0), known(0), Measure{}},
		"cached tokens are apart":  {known(400), known(401), Measure{}},
		"fewer than none":          {known(400), known(-1), Measure{}},
	} {
		got := analyze(t, standard, Observed{Duration: ms, InputTokens: test.input, CachedInputTokens: test.cached}, nil)
		require.Equal(t, test.want, got.Measures[numbers.CachedInputShare], situation)
	}
}

// A prefill of 200 ms for 400 tokens: the rate is that of the engine, or missing.
func TestAnalyze_PrefillTokenRate(t *testing.T) {
	known, unknown := optional.Of[int64], optional.Value[int64]{}
	queued := func(r *Observed) { r.Queue = optional.Of(100 * ms) } // the first token comes after 300 ms
	reported := func(r *Observed) { r.Prefill = optional.Of(200 * ms) }
	for situation, test := range map[string]struct {
		timed         func(*Observed)
		input, cached optional.Value[int64]
		want          Measure
	}{
		"the engine reports its prefill": {reported, known(400), known(0), Measure{Value: 2000, Known: true}},
		"from schedule to first token":   {queued, known(400), known(0), Measure{Value: 2000, Known: true}},
		"most are cached":                {reported, known(400), known(390), Measure{Value: 50, Known: true}},
		"all are cached":                 {reported, known(400), known(400), Measure{}},
		"no report about caching":        {reported, known(400), unknown, Measure{}},
		"no input tokens reported":       {reported, unknown, known(0), Measure{}},
		"cached tokens are apart":        {reported, known(400), known(401), Measure{}},
		"the wait is part of it":         {func(*Observed) {}, known(400), known(0), Measure{}},
		"the engine estimates it":        {func(r *Observed) { reported(r); r.PrefillEstimated = true }, known(400), known(0), Measure{}},
		"it took no time":                {func(r *Observed) { r.Prefill = optional.Of[time.Duration](0) }, known(400), known(0), Measure{}},
		"it took longer than all":        {func(r *Observed) { r.Prefill = optional.Of(2 * time.Second) }, known(400), known(0), Measure{}},
	} {
		request := Observed{Duration: time.Second, InputTokens: test.input, CachedInputTokens: test.cached}
		test.timed(&request)
		got := analyze(t, standard, request, contents(300, 400))
		require.Equal(t, test.want, got.Measures[numbers.PrefillTokenRate], situation)
	}
}

func TestAnalyze_SpeculativeDecoding(t *testing.T) {
	known := optional.Of[int64]
	for situation, test := range map[string]struct {
		accepted, draft         optional.Value[int64]
		wantAccepted, wantDraft Measure
	}{
		"some accepted":        {known(10), known(129), Measure{Value: 10, Known: true}, Measure{Value: 129, Known: true}},
		"nothing proposed":     {known(0), known(0), Measure{Known: true}, Measure{Known: true}},
		"more than proposed":   {known(5), known(4), Measure{}, Measure{}},
		"fewer than none":      {known(-1), known(4), Measure{}, Measure{}},
		"no report of drafts":  {known(5), optional.Value[int64]{}, Measure{}, Measure{}},
		"no report of accepts": {optional.Value[int64]{}, known(5), Measure{}, Measure{}},
	} {
		got := analyze(t, standard, Observed{Duration: ms, AcceptedTokens: test.accepted, DraftTokens: test.draft}, nil)
		require.Equal(t, test.wantAccepted, got.Measures[numbers.SpeculativeAcceptedTokens], situation)
		require.Equal(t, test.wantDraft, got.Measures[numbers.SpeculativeDraftTokens], situation)
	}
}

func TestAnalyze_ChunkCountOfFrames(t *testing.T) {
	unwatched := analyze(t, standard, Observed{Duration: time.Second, TokensNotObserved: true}, nil)
	require.False(t, unwatched.Measures[numbers.ChunkCount].Known, "chunks were not observed")

	frames := Observed{Duration: time.Second, Frames: true, TokensNotObserved: true, FirstChunksDropped: 7}
	l := analyze(t, standard, frames, contents(100, 200, 220))
	require.Equal(t, Measure{Value: 10, Known: true}, l.Measures[numbers.ChunkCount])
	require.True(t, l.Measures[numbers.InterTokenP50].Estimated)
	require.InDelta(t, 0.1, l.Measures[numbers.InterChunkMax].Value, 1e-12, "gaps between remaining frames are kept")
	require.False(t, l.Measures[numbers.TokenCount].Known, "frames are not tokens")

	frames = Observed{Duration: time.Second, Frames: true, OutputTokens: optional.Of(int64(2))}
	require.EqualValues(t, -1, analyze(t, standard, frames, contents(100, 200, 220)).Count(numbers.TokenCountMismatch))
}

func TestAnalyze_NoFluidityWithoutFirstChunk(t *testing.T) {
	options := Options{StallThreshold: 500 * ms, Fluidity: Deadlines{FirstToken: time.Second, NextToken: 50 * ms}}
	for _, request := range []Observed{
		{Duration: time.Second, StartUnknown: true},
		{Duration: time.Second, Frames: true, FirstChunksDropped: 1},
	} {
		require.False(t, analyze(t, options, request, contents(0, 20)).Measures[numbers.FluidityIndex].Known)
	}
	l := analyze(t, options, Observed{Duration: time.Second, Frames: true}, contents(0, 20))
	require.Equal(t, Measure{1, true, true}, l.Measures[numbers.FluidityIndex])
}

func TestAnalyze_RejectsImplausibleReportedGaps(t *testing.T) {
	known := func(v float64) Measure { return Measure{Value: v, Known: true} }
	request := Observed{
		Duration: time.Second, TokensNotObserved: true,
		ReportedGaps: ReportedGaps{
			InterToken: Distribution{Mean: known(0.02), P50: known(-0.001), P99: known(1.001), Max: known(1)},
			InterChunk: Distribution{Mean: {Value: 0.03, Known: true, Estimated: true}},
		},
	}
	l := analyze(t, standard, request, nil)
	require.Equal(t, Distribution{Mean: known(0.02), Max: known(1)}, l.Gaps(numbers.InterTokenMean))
	require.Equal(t, request.ReportedGaps.InterChunk, l.Gaps(numbers.InterChunkMean))
	require.EqualValues(t, 1, l.Rejected[Negative])
	require.EqualValues(t, 1, l.Rejected[LongerThanRequest])

	seen := analyze(t, standard, request, contents(0, 40))
	require.InDelta(t, 0.04, seen.Measures[numbers.InterTokenMean].Value, 1e-12, "a timeline takes precedence")
	require.False(t, math.IsNaN(seen.Measures[numbers.InterChunkMean].Value))
}
