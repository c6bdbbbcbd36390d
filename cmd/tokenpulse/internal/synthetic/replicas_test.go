// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

func engines(n int, rate float64) Config {
	config := plain()
	config.Engines, config.Rate = n, rate
	config.ReasoningRatio, config.ToolCallRatio = 0.3, 0.1
	return config
}

// byEngine returns the streams of each service.instance.id.
func byEngine(streams []*stream.Stream) map[string][]*stream.Stream {
	all := map[string][]*stream.Stream{}
	for _, s := range streams {
		name := s.ResourceAttributes()["service.instance.id"].(string)
		all[name] = append(all[name], s)
	}
	return all
}

func TestEngines_StreamsAreWellFormed(t *testing.T) {
	streams := all(t, engines(3, 12)) // refuses some
	require.Len(t, streams, 2000)
	start, refused := begin, 0
	for _, s := range streams {
		require.GreaterOrEqual(t, s.Start, start)
		start = s.Start
		require.Equal(t, timeline.VantageEngine, s.Vantage)
		if s.End.Error != "" {
			require.Equal(t, "queue full", s.End.Error)
			require.Empty(t, s.Chunks)
			refused++
			continue
		}
		require.GreaterOrEqual(t, s.Scheduled, s.Start)
		last := s.Scheduled
		for i, c := range s.Chunks {
			require.Greater(t, c.Time, last)
			last = c.Time
			require.EqualValues(t, i, c.Sequence)
			require.EqualValues(t, 1, c.Tokens)
		}
		require.EqualValues(t, len(s.Chunks), *s.End.Usage.OutputTokens)
		require.Greater(t, s.End.Time, last)
	}
	require.Positive(t, refused)
	require.Less(t, refused, 1000)
	for name, of := range byEngine(streams) {
		require.Contains(t, []string{"engine-1", "engine-2", "engine-3"}, name)
		require.InEpsilon(t, 2000.0/3, len(of), 0.1, "the router spreads them")
	}
}

// The batch of an engine has 16 places, which an overload fills.
func TestEngines_ServeSixteenRequestsAtATime(t *testing.T) {
	for name, streams := range byEngine(all(t, engines(2, 6))) {
		type change struct {
			at int64
			by int
		}
		var changes []change
		for _, s := range streams {
			if len(s.Chunks) > 0 {
				changes = append(changes, change{s.Scheduled, 1}, change{s.Chunks[len(s.Chunks)-1].Time, -1})
			}
		}
		slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
		running, most := 0, 0
		for _, c := range changes {
			running += c.by
			most = max(most, running)
		}
		require.Equal(t, 16, most, name)
	}
}

func good(s *stream.Stream) bool {
	if len(s.Chunks) == 0 || s.Chunks[0].Time-s.Start > int64(LimitTTFT) {
		return false
	}
	decode := s.Chunks[len(s.Chunks)-1].Time - s.Chunks[0].Time
	return decode <= int64(LimitTPOT)*int64(len(s.Chunks)-1)
}

func TestLimit_SeparatesLoadsThatMeetTheObjective(t *testing.T) {
	for _, objective := range []float64{0.9, 0.99} {
		config := engines(2, 1)
		config.Requests = 20_000
		limit, ok := config.Limit(objective)
		require.True(t, ok)
		shareAt := func(factor float64) float64 {
			config.Rate = 2 * limit.Requests * factor
			n, output, prompt := 0.0, 0.0, 0.0
			streams := all(t, config)
			for _, s := range streams {
				if good(s) {
					n++
				}
				if u := s.End.Usage; u != nil {
					output, prompt = output+float64(*u.OutputTokens), prompt+float64(*u.InputTokens-*u.CachedInputTokens)
				}
			}
			seconds := float64(streams[len(streams)-1].Start-begin) / 1e9
			require.InEpsilon(t, limit.Output*factor, output/seconds/2, 0.03)
			require.InEpsilon(t, limit.Prompt*factor, prompt/seconds/2, 0.05)
			return n / float64(len(streams))
		}
		require.Greater(t, shareAt(0.93), objective)
		require.Less(t, shareAt(1.07), objective)
	}
}

func TestLimit_GrowsWithTheSpeedOfTheModel(t *testing.T) {
	config := engines(1, 1)
	slow, ok := config.Limit(0.95)
	require.True(t, ok)
	config.Models[0].Speed = 2
	fast, ok := config.Limit(0.95)
	require.True(t, ok)
	require.InDelta(t, 2.2, fast.Requests/slow.Requests, 0.2, "over twice: the SLO stays")
}

func TestLimit_IsUnknownForAnEngineThatIsTooSlow(t *testing.T) {
	config := engines(1, 1)
	config.Models[0].Speed = 0.1
	_, ok := config.Limit(0.9)
	require.False(t, ok)
}

// Twelve hours are enough to learn most of the known limit: with `generate --fast`, they take seconds.
func TestEngines_CapacityLearnsTheirLimit(t *testing.T) {
	const objective = 0.95
	config := engines(1, 0.5)
	config.Requests, config.Duration, config.PeakRate, config.Period = 0, 12*time.Hour, 2.5, 4*time.Hour
	limit, ok := config.Limit(objective)
	require.True(t, ok)
	table := capacity.NewTable([]capacity.Objective{{SLO: "all", Objective: objective, Forget: 24 * time.Hour}})
	streams := all(t, config)
	slices.SortStableFunc(streams, func(a, b *stream.Stream) int { return cmp.Compare(a.End.Time, b.End.Time) })
	now := time.Unix(0, begin).Add(config.Duration)
	for _, s := range streams {
		r := capacity.Request{
			Vantage: "engine", Replica: s.ResourceAttributes()["service.instance.id"].(string),
			Start: time.Unix(0, s.Start), End: time.Unix(0, s.End.Time), Verdicts: [capacity.MaxObjectives]capacity.Verdict{capacity.Bad},
		}
		if good(s) {
			r.Verdicts[0] = capacity.Good
		}
		if u := s.End.Usage; u != nil {
			r.Sized, r.Output, r.Prompt = true, *u.OutputTokens, *u.InputTokens-*u.CachedInputTokens
		}
		table.Record([]byte("m"), &r, now)
	}
	require.Zero(t, table.Dropped())
	visited := 0
	table.Visit(now, func(s *capacity.State) {
		visited++
		require.True(t, s.Known(), "%s", s.Reason)
		require.LessOrEqual(t, s.Limit[capacity.Requests], limit.Requests)
		require.Greater(t, s.Limit[capacity.Requests], 0.6*limit.Requests)
	})
	require.Equal(t, 1, visited)
}

// Of a sine from 1 to 5 with a mean of 3, the quarters of the period around its end and its middle have the means 3 - 4√2/π and 3 + 4√2/π.
func TestStreams_RateFollowsTheCurve(t *testing.T) {
	config := plain()
	config.Rate, config.PeakRate, config.Period = 1, 5, time.Minute
	config.Requests, config.Duration = 0, 100*time.Minute
	var trough, peak float64
	streams := all(t, config)
	for _, s := range streams {
		switch phase := time.Duration(s.Start-begin) % config.Period; {
		case phase < 7500*time.Millisecond || phase >= 52500*time.Millisecond:
			trough++
		case phase >= 22500*time.Millisecond && phase < 37500*time.Millisecond:
			peak++
		}
	}
	const minutes, quarter = 100, 15
	for _, part := range []struct{ n, seconds, rate float64 }{
		{float64(len(streams)), 60, 3},
		{trough, quarter, 3 - 4*math.Sqrt2/math.Pi},
		{peak, quarter, 3 + 4*math.Sqrt2/math.Pi},
	} {
		expected := minutes * part.seconds * part.rate
		require.InDelta(t, expected, part.n, 5*math.Sqrt(expected))
	}
}
