// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// reference implements definitions.md on plain slices: it keeps all samples, sorts
// them and takes the nearest rank. NaN means absent.
type reference struct {
	measures               [numbers.Count]float64
	interToken, interChunk []float64
	stalls                 int
}

func newReference(duration time.Duration, chunks []chunk) reference {
	var r reference
	for q := range r.measures {
		r.measures[q] = math.NaN()
	}
	tokens, output := 0, -1
	e := duration.Seconds()
	within := func(v float64) float64 {
		if v < 0 || v > e {
			return math.NaN()
		}
		return v
	}
	stalled := 0.0
	for i, c := range chunks {
		tokens += int(c.tokens)
		if c.channel.IsOutput() && output < 0 {
			output = i
		}
		if i == 0 {
			continue
		}
		gap := within(c.at/1e3 - chunks[i-1].at/1e3)
		if math.IsNaN(gap) {
			continue
		}
		r.interChunk = append(r.interChunk, gap)
		for range c.tokens {
			r.interToken = append(r.interToken, gap/float64(c.tokens))
		}
		if gap > 0.5 {
			r.stalls++
			stalled += gap
		}
	}
	k := len(chunks)
	first, last := chunks[0].at/1e3, chunks[k-1].at/1e3
	r.measures[numbers.RequestDuration] = e
	r.measures[numbers.TimeToFirstToken] = within(first)
	r.measures[numbers.PrefillDuration] = within(first)
	if output >= 0 {
		r.measures[numbers.TimeToFirstOutputToken] = within(chunks[output].at / 1e3)
	}
	r.measures[numbers.DecodeDuration] = within(last - first)
	if sum := within(first) + within(last-first); sum > 0 {
		r.measures[numbers.DecodeShare] = within(last-first) / sum
	}
	if k > 1 {
		if r.stalls > 0 {
			r.measures[numbers.StallDuration] = within(stalled)
		}
		if tokens > 1 {
			r.measures[numbers.TimePerOutputToken] = within(last-first) / float64(tokens-1)
		}
		if r.measures[numbers.TimePerOutputToken] > 0 {
			r.measures[numbers.OutputTokenRate] = 1 / r.measures[numbers.TimePerOutputToken]
		}
	}
	r.measures[numbers.RequestTokenRate] = float64(tokens) / e
	return r
}

func requireDistribution(t *testing.T, samples []float64, d Distribution) {
	t.Helper()
	for _, m := range d {
		require.Equal(t, len(samples) > 0, m.Known)
	}
	if len(samples) == 0 {
		return
	}
	slices.Sort(samples)
	sum := 0.0
	for _, v := range samples {
		sum += v
	}
	nearestRank := func(q float64) float64 {
		return samples[max(0, int(math.Ceil(q*float64(len(samples))))-1)]
	}
	require.InEpsilon(t, 1+sum/float64(len(samples)), 1+d[Mean].Value, 1e-9)
	require.InDelta(t, samples[len(samples)-1], d[Max].Value, 0.5e-9+1e-12, "in whole nanoseconds")
	for q, got := range map[float64]float64{0.5: d[P50].Value, 0.95: d[P95].Value, 0.99: d[P99].Value} {
		require.InDelta(t, nearestRank(q), got, 0.01*nearestRank(q)+1e-9, "quantile %v", q)
	}
}

// randomStream returns the duration and chunks of a stream whose clock sometimes goes
// back or jumps ahead.
func randomStream(random *rand.Rand) (time.Duration, []chunk) {
	var chunks []chunk
	at := float64(random.IntN(3_000_000)) / 1e3
	if random.IntN(10) == 0 {
		at = -at
	}
	for range 1 + random.IntN(200) {
		channel := timeline.Channel(random.IntN(3))
		tokens := uint32(1)
		if random.IntN(4) == 0 {
			tokens = 1 + uint32(random.IntN(50))
		}
		chunks = append(chunks, chunk{at, tokens, channel})
		switch random.IntN(50) {
		case 0: // goes back
			at -= float64(random.IntN(100_000)) / 1e3
		case 1: // jumps ahead
			at += float64(random.IntN(5_000_000)) / 1e3
		case 2: // same time again
		default:
			at += 20 * math.Exp(random.NormFloat64())
		}
		at = math.Round(at*1e3) / 1e3 // the resolution of a timeline
	}
	return time.Duration(1e6 * (math.Abs(at) + 500*random.NormFloat64())), chunks
}

func TestAnalyze_EqualsReference(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	a := NewAnalyzer(standard)
	for range 2000 {
		duration, chunks := randomStream(random)
		if duration <= 0 {
			continue
		}
		l, err := a.Analyze(Observed{Duration: duration}, pack(t, chunks))
		require.NoError(t, err)
		r := newReference(duration, chunks)
		for q, m := range l.Measures[:numbers.StallCount] {
			expected := r.measures[q]
			require.Equal(t, !math.IsNaN(expected), m.Known, "quantity %d of %v %v", q, duration, chunks)
			if m.Known {
				require.InEpsilon(t, 1+expected, 1+m.Value, 1e-6, "quantity %d of %v %v", q, duration, chunks)
			}
		}
		requireDistribution(t, r.interToken, l.Gaps(numbers.InterTokenMean))
		requireDistribution(t, r.interChunk, l.Gaps(numbers.InterChunkMean))
		if l.Measures[numbers.StallDuration].Known {
			require.EqualValues(t, r.stalls, l.Count(numbers.StallCount))
		}
	}
}
