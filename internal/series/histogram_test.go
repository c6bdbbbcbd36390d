// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

func TestClassicCounts_AreExactAtBounds(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		o.ClassicBounds = map[string][]float64{"tokenpulse.time_to_first_token": {0.05, 0.1, 0.2}}
	})
	for _, v := range []float64{0, 0.05, math.Nextafter(0.05, 1), 0.1, 0.15, 0.2, math.Nextafter(0.2, 1), 7} {
		e.Record(answered("m", e.at(0), v))
	}
	require.Equal(t, []uint64{2, 2, 2, 2}, e.collect(e.at(0), numbers.TimeToFirstToken)["m"].classic)
}

func distribution(values ...float64) Distribution {
	var s sketch.Sketch
	for _, v := range values {
		s.Add(v, 1)
	}
	return Distribution{Sketch: s.AppendBinary(nil), Max: s.Max()}
}

// The merged sketches of many requests equal one sketch of all values. Classic buckets
// equal counts of the values, except for values up to 1.1% above a bound.
func TestRecord_MergesSketches(t *testing.T) {
	e := newTestEngine(nil)
	random := rand.New(rand.NewPCG(3, 4))
	var whole sketch.Sketch
	var values []float64
	for i := range 200 {
		var gaps []float64
		for range 1 + random.IntN(100) {
			gaps = append(gaps, math.Round(20*math.Exp(random.NormFloat64()))/1000, 0.02*math.Exp(random.NormFloat64()))
		}
		r := request("m", e.at(time.Duration(i)*time.Second))
		*r.Distribution(numbers.InterTokenLatency) = distribution(gaps...)
		require.Zero(t, e.Record(r).MalformedSketches)
		values = append(values, gaps...)
		for _, v := range gaps {
			whole.Add(v, 1)
		}
	}
	e.Collect(e.at(200*time.Second), func(s *Snapshot) {
		d := &s.Outcomes[Success].Distributions[numbers.InterTokenLatency]
		require.Equal(t, whole.Count(), d.Sketch.Count())
		require.InEpsilon(t, whole.Sum(), d.Sketch.Sum(), 1e-9)
		require.Equal(t, whole.Min(), d.Sketch.Min())
		require.Equal(t, whole.Max(), d.Sketch.Max())
		require.Equal(t, maps.Collect(whole.Buckets()), maps.Collect(d.Sketch.Buckets()))
		cumulative, atLeast, atMost := uint64(0), uint64(0), uint64(0)
		for i, bound := range e.bounds[numbers.InterTokenLatency] {
			cumulative += d.Classic[i]
			atLeast, atMost = 0, 0
			for _, v := range values {
				if v <= bound {
					atLeast++
				}
				if v <= bound*1.011 {
					atMost++
				}
			}
			require.GreaterOrEqual(t, cumulative, atLeast, "bound %v", bound)
			require.LessOrEqual(t, cumulative, atMost, "bound %v", bound)
		}
		require.Equal(t, d.Sketch.Count(), cumulative+d.Classic[len(d.Classic)-1])
	})
}

func TestRecord_MalformedSketchKeepsTheRest(t *testing.T) {
	e := newTestEngine(nil)
	r := answered("m", e.at(0), 0.2)
	*r.Distribution(numbers.InterTokenLatency) = Distribution{Sketch: []byte{1, 2, 3}, Max: 1}
	*r.Distribution(numbers.InterChunkLatency) = distribution(0.02)
	require.Equal(t, 1, e.Record(r).MalformedSketches)
	require.Zero(t, e.collect(e.at(0), numbers.InterTokenLatency)["m"].count)
	require.Empty(t, e.collect(e.at(0), numbers.InterTokenLatency)["m"].exemplars)
	require.EqualValues(t, 1, e.collect(e.at(0), numbers.InterChunkLatency)["m"].count)
	require.EqualValues(t, 1, e.collect(e.at(0), numbers.TimeToFirstToken)["m"].count)
}

// Sketches with more values than a request can have are rejected, so that totals of
// many requests cannot overflow.
func TestRecord_RejectsHugeDistributions(t *testing.T) {
	e := newTestEngine(nil)
	huge := func(gap float64, values uint64) *Contribution {
		var s sketch.Sketch
		s.Add(gap, values)
		r := answered("m", e.at(0), 0.2)
		*r.Distribution(numbers.InterTokenLatency) = Distribution{Sketch: s.AppendBinary(nil), Max: gap}
		return r
	}
	require.Equal(t, 1, e.Record(huge(0.02, maxValues+1)).MalformedSketches)
	const fast, slow = 4000, 1000 // requests; 2^42 values
	for i := range fast + slow {
		gap := 0.02
		if i >= fast {
			gap = 0.5
		}
		require.Zero(t, e.Record(huge(gap, maxValues)).MalformedSketches)
		e.collect(e.at(0), numbers.InterTokenLatency)
	}
	got := e.collect(e.at(0), numbers.InterTokenLatency)["m"]
	require.EqualValues(t, int64((fast+slow)*maxValues), got.count)
	require.NotEmpty(t, got.quantiles)
	require.Equal(t, 0, got.quantiles[0].Quantile)
	require.InEpsilon(t, 0.02, got.quantiles[0].Value, 0.0055, "the median is a value of the first requests")
}

func TestRecord_KeepsTheLatestExemplarOfEachBucket(t *testing.T) {
	e := newTestEngine(func(o *Options) {
		o.ClassicBounds = map[string][]float64{"tokenpulse.time_to_first_token": {0.1, 1}, "tokenpulse.inter_token_latency": {0.1, 1}}
	})
	for i, v := range []float64{0.05, 0.5, 0.06, 30} {
		r := answered("m", e.at(time.Duration(i)*time.Second), v)
		r.TraceID, r.SpanID = [16]byte{byte(i + 1)}, [8]byte{byte(i + 1)}
		*r.Distribution(numbers.InterTokenLatency) = distribution(0.01, v, 0.02)
		e.Record(r)
	}
	e.Record(answered("m", e.at(9*time.Second), 0.07)) // without a trace
	for _, q := range []numbers.ID{numbers.TimeToFirstToken, numbers.InterTokenLatency} {
		want := func(i byte, v float64) Exemplar {
			return Exemplar{TraceID: [16]byte{i}, SpanID: [8]byte{i}, Value: v, UnixNano: e.at(time.Duration(i-1) * time.Second).UnixNano()}
		}
		require.Equal(t, []Exemplar{want(3, 0.06), want(2, 0.5), want(4, 30)}, e.collect(e.at(9*time.Second), q)["m"].exemplars)
	}
}
