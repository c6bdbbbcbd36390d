// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// burst returns n chunks of one token: the first at a time, the last so much later, the others at
// the first.
func burst(first time.Duration, n int, lasting time.Duration) []chunk {
	milliseconds := func(d time.Duration) float64 { return float64(d) / 1e6 }
	var chunks []chunk
	for range n - 1 {
		chunks = append(chunks, contents(milliseconds(first))...)
	}
	return append(chunks, contents(milliseconds(first+lasting))...)
}

// Buffered: 16 or more tokens, ck - c1 at most 1% of ck - t0, and under 1 ms per token after the
// first.
func TestAnalyze_Buffered(t *testing.T) {
	tests := map[string]struct {
		request  Observed
		chunks   []chunk
		buffered bool
	}{
		"exactly 1%, 16 tokens":                  {Observed{}, burst(990*ms, 16, 10*ms), true},
		"a microsecond over 1%":                  {Observed{}, burst(990*ms, 16, 10*ms+time.Microsecond), false},
		"15 tokens":                              {Observed{}, burst(990*ms, 15, 10*ms), false},
		"exactly 1 ms per token":                 {Observed{}, burst(9900*ms, 16, 15*ms), false},
		"a microsecond under 1 ms per token":     {Observed{}, burst(9900*ms, 16, 15*ms-time.Microsecond), true},
		"exactly 1 ms per token, 101 tokens":     {Observed{}, burst(9900*ms, 101, 100*ms), false},
		"just under 1 ms per token, exactly 1%":  {Observed{}, burst(9900*ms, 102, 100*ms), true},
		"all tokens in one chunk":                {Observed{}, []chunk{{at: 500, tokens: 16}}, true},
		"15 tokens in one chunk":                 {Observed{}, []chunk{{at: 500, tokens: 15}}, false},
		"16 reported tokens in 2 chunks":         {Observed{OutputTokens: optional.Of(int64(16))}, contents(990, 995), true},
		"15 reported tokens in 20 chunks":        {Observed{OutputTokens: optional.Of(int64(15))}, burst(990*ms, 20, 5*ms), false},
		"unknown start":                          {Observed{StartUnknown: true}, burst(990*ms, 16, 0), false},
		"an ordinary stream":                     {Observed{}, burst(100*ms, 50, time.Second), false},
		"more tokens than fit in milliseconds":   {Observed{OutputTokens: optional.Of(int64(1) << 60)}, contents(990, 1000), true},
		"the end of the request stands for ck":   {Observed{Duration: time.Second, FirstToken: firstTokenAt(990 * ms), OutputTokens: optional.Of(int64(16)), TokensNotObserved: true}, nil, true},
		"the end of the request, just too late":  {Observed{Duration: time.Second + 1, FirstToken: firstTokenAt(990 * ms), OutputTokens: optional.Of(int64(16)), TokensNotObserved: true}, nil, false},
		"the reported last token":                {Observed{FirstToken: firstTokenAt(990 * ms), LastToken: optional.Of(time.Second), OutputTokens: optional.Of(int64(16)), TokensNotObserved: true}, nil, true},
		"a decode that the engine measured":      {Observed{FirstToken: firstTokenAt(990 * ms), Decode: optional.Of(ms), OutputTokens: optional.Of(int64(16)), TokensNotObserved: true}, nil, false},
		"an unknown number of tokens":            {Observed{FirstToken: firstTokenAt(990 * ms), LastToken: optional.Of(990 * ms), TokensNotObserved: true}, nil, false},
		"no token":                               {Observed{OutputTokens: optional.Of(int64(16))}, nil, false},
		"a first token after the last":           {Observed{FirstToken: firstTokenAt(990 * ms), LastToken: optional.Of(980 * ms), OutputTokens: optional.Of(int64(16)), TokensNotObserved: true}, nil, false},
		"a request longer than any, in one part": {Observed{Duration: longestRequest, FirstToken: firstTokenAt(longestRequest - ms), OutputTokens: optional.Of(int64(16)), TokensNotObserved: true}, nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.request.Duration == 0 {
				tt.request.Duration = time.Minute
			}
			require.Equal(t, tt.buffered, analyze(t, standard, tt.request, tt.chunks).Buffered)
		})
	}
}

// The tokens of a buffered stream have the times of whatever held them back. What the user felt
// stays.
func TestAnalyze_BufferedStreamKeepsFirstTokenAndLosesPace(t *testing.T) {
	a := NewAnalyzer(standard)
	request := Observed{Duration: 1200 * ms, OutputTokens: optional.Of(int64(60))}
	chunks := append(burst(990*ms, 16, 5*ms), chunk{at: 1000, tokens: 44})
	l, err := a.Analyze(request, pack(t, chunks))
	require.NoError(t, err)
	require.True(t, l.Buffered)
	requireMeasures(t, want{
		numbers.RequestDuration: 1.2, numbers.TimeToFirstToken: 0.99, numbers.TimeToFirstOutputToken: 0.99, numbers.RequestTokenRate: 50,
		numbers.PrefillDuration: 0.99, numbers.DecodeDuration: 0.01, numbers.DecodeShare: 0.01,
	}, &l)
	require.Zero(t, l.Gaps(numbers.InterTokenMean))
	require.Zero(t, l.Gaps(numbers.InterChunkMean))
	require.EqualValues(t, 17, l.Measures[numbers.ChunkCount].Value)
	require.Nil(t, l.TokenGaps)
	require.Nil(t, l.ChunkGaps)
}

func TestAnalyze_BufferedStreamLosesReportedGaps(t *testing.T) {
	request := Observed{
		Duration: time.Second, FirstToken: firstTokenAt(990 * ms), OutputTokens: optional.Of(int64(50)), TokensNotObserved: true,
	}
	request.ReportedGaps.InterToken[P50] = Measure{Value: 0.0002, Known: true}
	request.ReportedGaps.InterChunk[Mean] = Measure{Value: 0.0002, Known: true}
	l := analyze(t, standard, request, nil)
	require.True(t, l.Buffered)
	require.Zero(t, l.Gaps(numbers.InterTokenMean))
	require.Zero(t, l.Gaps(numbers.InterChunkMean))
}

// The analyzer that saw a buffered stream forgets it.
func TestAnalyze_StreamAfterABufferedOneHasItsPace(t *testing.T) {
	a := NewAnalyzer(standard)
	_, err := a.Analyze(Observed{Duration: time.Second}, pack(t, burst(990*ms, 16, 0)))
	require.NoError(t, err)
	l, err := a.Analyze(Observed{Duration: time.Second}, pack(t, contents(100, 200, 300)))
	require.NoError(t, err)
	require.False(t, l.Buffered)
	require.InDelta(t, 0.1, l.Measures[numbers.TimePerOutputToken].Value, 1e-9)
	require.EqualValues(t, 2, l.TokenGaps.Count())
}
