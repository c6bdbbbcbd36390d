// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const begin = int64(1_795_233_292_181_556_789)

func plain() Config {
	return Config{
		Seed: 1, Begin: begin, Rate: 10, Requests: 2_000, Service: "chat", Provider: "vllm",
		Models: []Model{{"big", 1}}, Prefill: 400 * time.Millisecond, TPOT: 25 * time.Millisecond,
	}
}

func all(t *testing.T, config Config) []*stream.Stream {
	t.Helper()
	require.NoError(t, config.Validate())
	return slices.Collect(New(config).Streams)
}

func TestStreams_EqualSeedsGiveEqualStreams(t *testing.T) {
	config := plain()
	config.CancelRatio, config.ErrorRatio, config.ReasoningRatio, config.ToolCallRatio = 0.1, 0.1, 0.5, 0.5
	config.StallRatio, config.BundleRatio = 0.01, 0.2
	config.Models = append(config.Models, Model{"small", 3})
	first := all(t, config)
	require.Equal(t, first, all(t, config))
	config.Seed = 2
	require.NotEqual(t, first, all(t, config))
}

// Times, sequence numbers and channels are in order, and usage matches the chunks.
func TestStreams_AreWellFormed(t *testing.T) {
	config := plain()
	config.CancelRatio, config.ErrorRatio, config.IncompleteRatio = 0.2, 0.2, 0.2
	config.ReasoningRatio, config.ReasoningOnlyRatio, config.OneTokenRatio, config.ToolCallRatio = 0.3, 0.2, 0.2, 0.5
	config.StallRatio, config.BundleRatio = 0.01, 0.2
	ids := map[string]bool{}
	start := begin
	for _, s := range all(t, config) {
		require.False(t, ids[s.ID])
		ids[s.ID] = true
		require.GreaterOrEqual(t, s.Start, start)
		start = s.Start
		last, tokens, rank := s.Scheduled, uint64(0), 0
		require.GreaterOrEqual(t, s.Scheduled, s.Start)
		for i, c := range s.Chunks {
			require.GreaterOrEqual(t, c.Time, last)
			last = c.Time
			require.EqualValues(t, i, c.Sequence)
			require.Positive(t, c.Tokens)
			tokens += uint64(c.Tokens)
			// The order is reasoning, content, tool call.
			r := slices.Index([]timeline.Channel{timeline.Reasoning, timeline.Content, timeline.ToolCall}, c.Channel)
			require.GreaterOrEqual(t, r, rank)
			rank = r
			require.Zero(t, (c.Time-begin)%1_000, "offsets are whole microseconds")
		}
		if s.End == nil {
			continue
		}
		require.Greater(t, s.End.Time, last)
		if s.End.Usage != nil {
			require.Equal(t, *s.End.Usage.OutputTokens, tokens)
		}
	}
}

// requireShare fails if hits/n differs from the expected share by more than five
// standard deviations, which happens by chance about once in a million times.
func requireShare(t *testing.T, expected float64, hits, n int) {
	t.Helper()
	require.InDelta(t, expected, float64(hits)/float64(n), 5*math.Sqrt(expected*(1-expected)/float64(n)))
}

func TestStreams_RatiosOfOutcomesAndChunks(t *testing.T) {
	config := plain()
	config.CancelRatio, config.ErrorRatio, config.ReasoningRatio, config.ToolCallRatio = 0.15, 0.1, 0.4, 0.25
	config.StallRatio, config.BundleRatio = 0.02, 0.3
	var cancelled, failed, toolCalls, finished, reasoning, answers, bundles, chunks, stalls, gaps int
	streams := all(t, config)
	for _, s := range streams {
		switch {
		case s.End.Cancelled:
			cancelled++
			continue
		case s.End.Error != "":
			failed++
			continue
		}
		finished++
		if s.End.FinishReason == "tool_calls" {
			toolCalls++
		}
		if *s.End.Usage.OutputTokens >= 10 { // in shorter answers, reasoning may round to 0 tokens
			answers++
			if s.Chunks[0].Channel == timeline.Reasoning {
				reasoning++
			}
		}
		// The last chunk of a channel is left out: a bundle may not fit.
		for i, c := range s.Chunks {
			if i+1 < len(s.Chunks) && s.Chunks[i+1].Channel == c.Channel {
				chunks++
				if c.Tokens > 1 {
					bundles++
				}
			}
			if i > 0 {
				gaps++
				if c.Time-s.Chunks[i-1].Time > int64(400*time.Millisecond) {
					stalls++
				}
			}
		}
	}
	requireShare(t, 0.15, cancelled, len(streams))
	requireShare(t, 0.1, failed, len(streams))
	requireShare(t, 0.25, toolCalls, finished)
	requireShare(t, 0.4, reasoning, answers)
	requireShare(t, 0.3, bundles, chunks)
	requireShare(t, 0.02, stalls, gaps)
}

// Also, the reported usage equals the tokens of the chunks.
func TestStreams_RatiosOfAnswers(t *testing.T) {
	config := plain()
	config.ReasoningRatio, config.ReasoningOnlyRatio, config.OneTokenRatio = 0.2, 0.1, 0.3
	config.ToolCallRatio, config.BundleRatio = 0.5, 0.5
	var reasoningOnly, oneToken, toolCalls int
	streams := all(t, config)
	for _, s := range streams {
		tokens := map[timeline.Channel]uint64{}
		for _, c := range s.Chunks {
			tokens[c.Channel] += uint64(c.Tokens)
		}
		reasoning, answer := tokens[timeline.Reasoning], tokens[timeline.Content]+tokens[timeline.ToolCall]
		require.Equal(t, reasoning, *s.End.Usage.ReasoningTokens)
		require.Equal(t, reasoning+answer, *s.End.Usage.OutputTokens)
		switch {
		case answer == 0:
			reasoningOnly++
			require.Equal(t, "length", s.End.FinishReason)
		case answer == 1 && reasoning == 0:
			oneToken++
		}
		if tokens[timeline.ToolCall] > 0 {
			toolCalls++
			require.Equal(t, "tool_calls", s.End.FinishReason)
		}
	}
	requireShare(t, 0.1, reasoningOnly, len(streams))
	requireShare(t, 0.3, oneToken, len(streams))
	requireShare(t, 0.5, toolCalls, len(streams)-reasoningOnly)
}

// An incomplete stream is cut at a random chunk and has no end. With --concurrency, the
// next request still starts.
func TestStreams_IncompleteStreamsHaveNoEnd(t *testing.T) {
	config := plain()
	config.Concurrency = 7
	complete := all(t, config)
	config.IncompleteRatio = 0.2
	incomplete := 0
	var kept float64
	streams := all(t, config)
	for i, s := range streams {
		if s.End != nil {
			continue
		}
		incomplete++
		require.Less(t, len(s.Chunks), len(complete[i].Chunks), "equal seeds give equal chunks before the cut")
		kept += float64(len(s.Chunks)) / float64(len(complete[i].Chunks))
	}
	requireShare(t, 0.2, incomplete, len(streams))
	// A uniform share has the mean 1/2 and the variance 1/12.
	require.InDelta(t, 0.5, kept/float64(incomplete), 5/math.Sqrt(12*float64(incomplete)))
}

// A new kind of stream must not change the other streams of a seed.
func TestStreams_IncompleteRatioKeepsOtherStreams(t *testing.T) {
	config := plain()
	config.CancelRatio, config.ErrorRatio = 0.1, 0.1
	before := all(t, config)
	config.IncompleteRatio = 0.1
	same := 0
	for i, s := range all(t, config) {
		if s.End != nil {
			require.Equal(t, before[i], s)
			same++
		}
	}
	require.Greater(t, same, len(before)/2)
}

// A stream of 16 or more tokens within 1% of the time to the last one may count as buffered.
func TestStreams_DoNotLookBuffered(t *testing.T) {
	config := plain()
	config.Models = append(config.Models, Model{"small", 3})
	config.CancelRatio, config.ErrorRatio, config.BundleRatio, config.StallRatio = 0.2, 0.2, 0.2, 0.01
	for _, s := range all(t, config) {
		tokens := uint64(0)
		for _, c := range s.Chunks {
			tokens += uint64(c.Tokens)
		}
		if tokens < 16 {
			continue
		}
		first, last := s.Chunks[0].Time, s.Chunks[len(s.Chunks)-1].Time
		require.Greater(t, 100*(last-first), last-s.Start, "%d tokens", tokens)
	}
}

// The median of n samples of a lognormal has a relative standard error of about
// exp(1.25 sigma / sqrt(n)) - 1. The test allows five of them.
func TestPrefillTime_MedianGrowsWithPrompt(t *testing.T) {
	const n = 20_000
	tests := map[string]struct {
		input    int
		expected time.Duration
	}{
		"prompt of median length":               {400, 400 * time.Millisecond},
		"empty prompt":                          {0, 80 * time.Millisecond},
		"prompt of ten times the median length": {4_000, 3_280 * time.Millisecond},
		"longest prompt":                        {32_000, 25_680 * time.Millisecond},
		"prompt of half the median length":      {200, 240 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			samples := make([]time.Duration, n)
			for i := range samples {
				samples[i] = prefillTime(random, 400*time.Millisecond, test.input)
			}
			slices.Sort(samples)
			tolerance := math.Expm1(5 * 1.2533 * 0.3 / math.Sqrt(n))
			require.InEpsilon(t, test.expected, samples[n/2], tolerance)
		})
	}
}

// The relative standard deviation of a lognormal is sqrt(exp(sigma^2) - 1), that of
// the mean of n samples is smaller by sqrt(n). The test allows five of them.
func TestStepTime_HasRequestedMean(t *testing.T) {
	const n = 100_000
	random := rand.New(rand.NewPCG(1, 1))
	var sum time.Duration
	for range n {
		sum += stepTime(random, 25*time.Millisecond)
	}
	tolerance := 5 * math.Sqrt(math.Expm1(0.25*0.25)/n)
	require.InEpsilon(t, 25*time.Millisecond, sum/n, tolerance)
}

func TestStreams_SpeedDividesPrefillAndSteps(t *testing.T) {
	config := plain()
	slow := all(t, config)
	config.Models = []Model{{"big", 4}}
	fast := all(t, config)
	for i, s := range slow {
		f := fast[i] // equal seeds give the same stream, four times as fast
		require.Len(t, f.Chunks, len(s.Chunks))
		require.InDelta(t, float64(s.Chunks[0].Time-s.Scheduled)/4, f.Chunks[0].Time-f.Scheduled, 2_000)
		// Each time is truncated to a microsecond, but truncation does not accumulate.
		decode := func(s *stream.Stream) float64 { return float64(s.Chunks[len(s.Chunks)-1].Time - s.Chunks[0].Time) }
		require.InDelta(t, decode(s)/4, decode(f), 3_000)
	}
}

// n arrivals take n/rate, with a standard deviation of sqrt(n)/rate.
func TestStreams_RequestsPerSecond(t *testing.T) {
	streams := all(t, plain())
	took := float64(streams[len(streams)-1].Start-begin) / 1e9
	require.InDelta(t, 200, took, 5*math.Sqrt(2_000)/10)
}

func TestStreams_ConcurrencyIsConstant(t *testing.T) {
	config := plain()
	config.Concurrency = 7
	streams := all(t, config)
	for i, s := range streams {
		if i < 7 {
			require.Equal(t, begin, s.Start)
			continue
		}
		inFlight := 1
		for _, other := range streams[:i] {
			if other.End.Time > s.Start {
				inFlight++
			}
		}
		require.Equal(t, 7, inFlight, "stream %d", i)
	}
}

func TestStreams_DurationLimitsStarts(t *testing.T) {
	config := plain()
	config.Requests, config.Duration = 0, 3*time.Second
	streams := all(t, config)
	require.NotEmpty(t, streams)
	require.Less(t, streams[len(streams)-1].Start, begin+int64(3*time.Second))
	require.Greater(t, streams[len(streams)-1].Start, begin+int64(time.Second))
}

func TestValidate_ErrorNamesFlagAndRemedy(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		err    string
	}{
		"share above one":        {func(c *Config) { c.StallRatio = 1.1 }, "--stall-ratio is 1.1; give a share from 0 to 1"},
		"share not a number":     {func(c *Config) { c.CancelRatio = math.NaN() }, "--cancel-ratio is NaN; give a share from 0 to 1"},
		"outcomes above one":     {func(c *Config) { c.CancelRatio, c.ErrorRatio, c.IncompleteRatio = 0.4, 0.4, 0.4 }, "--cancel-ratio, --error-ratio and --incomplete-ratio add up to 1.2; lower them to at most 1"},
		"answers above one":      {func(c *Config) { c.ReasoningRatio, c.ReasoningOnlyRatio, c.OneTokenRatio = 0.4, 0.4, 0.4 }, "--reasoning-ratio, --reasoning-only-ratio and --one-token-ratio add up to 1.2; lower them to at most 1"},
		"incomplete share":       {func(c *Config) { c.IncompleteRatio = -1 }, "--incomplete-ratio is -1; give a share from 0 to 1"},
		"reasoning-only share":   {func(c *Config) { c.ReasoningOnlyRatio = 2 }, "--reasoning-only-ratio is 2; give a share from 0 to 1"},
		"one-token share":        {func(c *Config) { c.OneTokenRatio = 2 }, "--one-token-ratio is 2; give a share from 0 to 1"},
		"rate of zero":           {func(c *Config) { c.Rate = 0 }, "--rate is 0; give a number above 0 and at most 1000000"},
		"negative concurrency":   {func(c *Config) { c.Concurrency = -1 }, "--concurrency is -1; give a positive number, or 0 to use --rate"},
		"negative requests":      {func(c *Config) { c.Requests = -1 }, "--requests is -1; give a positive number, or 0 for no limit"},
		"negative duration":      {func(c *Config) { c.Duration = -time.Second }, "--duration is -1s; give a positive duration, or 0 for no limit"},
		"prefill of zero":        {func(c *Config) { c.Prefill = 0 }, "--prefill is 0s; give a duration above 0 and at most 1h"},
		"time per token of zero": {func(c *Config) { c.TPOT = 0 }, "--tpot is 0s; give a duration above 0 and at most 1m"},
		"peak rate below zero":   {func(c *Config) { c.PeakRate = -1 }, "--peak-rate is -1; give a number above 0 and at most 1000000, or 0 for a constant --rate"},
		"period of zero":         {func(c *Config) { c.PeakRate = 20 }, "--period is 0s; give a positive duration"},
		"too many engines":       {func(c *Config) { c.Engines = 1001 }, "--engines is 1001; give a number up to 1000, or 0 for times that do not depend on load"},
		"two models":             {func(c *Config) { c.Engines, c.Models = 1, []Model{{"a", 1}, {"b", 1}} }, "--engines serve one model, not 2; give one --model"},
		"no model":               {func(c *Config) { c.Models = nil }, "--model is missing; give at least one model"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := plain()
			test.change(&config)
			require.EqualError(t, config.Validate(), test.err)
		})
	}
}

func TestParseModel_NameAndSpeed(t *testing.T) {
	for text, expected := range map[string]Model{
		"llama3:8b": {"llama3:8b", 1}, "m=2.5": {"m", 2.5},
	} {
		model, err := ParseModel(text)
		require.NoError(t, err)
		require.Equal(t, expected, model)
	}
	for _, text := range []string{"", "=2", "m=", "m=fast", "m=0", "m=-1", "m=NaN", "m=Inf"} {
		_, err := ParseModel(text)
		require.ErrorContains(t, err, fmt.Sprintf("--model %q has ", text))
	}
}

func BenchmarkGenerate(b *testing.B) {
	config := plain()
	config.Requests = 0
	next, stop := iter.Pull(New(config).Streams)
	defer stop()
	tokens := 0
	b.ReportAllocs()
	for b.Loop() {
		s, ok := next()
		require.True(b, ok)
		tokens += stream.Whole(s).Tokens()
	}
	require.GreaterOrEqual(b, tokens, b.N)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
}
