// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

func TestSelection_Defaults(t *testing.T) {
	var off []string
	for _, name := range MetricNames() {
		if !(Selection{}).Has(name) {
			off = append(off, name)
		}
	}
	require.Equal(t, []string{
		"tokenpulse.audio.real_time_factor",
		"tokenpulse.audio.real_time_factor.percentile",
		"tokenpulse.inter_audio_chunk_latency",
		"tokenpulse.inter_audio_chunk_latency.percentile",
		"tokenpulse.inter_chunk_latency",
		"tokenpulse.inter_chunk_latency.percentile",
		"tokenpulse.output_token_rate",
		"tokenpulse.output_token_rate.percentile",
		"tokenpulse.phase.duration.percentile",
		"tokenpulse.prefill_token_rate",
		"tokenpulse.prefill_token_rate.percentile",
		"tokenpulse.request_token_rate",
		"tokenpulse.request_token_rate.percentile",
		"tokenpulse.speculative.accepted_tokens",
		"tokenpulse.speculative.draft_tokens",
		"tokenpulse.time_per_token",
		"tokenpulse.time_per_token.percentile",
		"tokenpulse.time_to_first_audio.percentile",
		"tokenpulse.time_to_first_output_token",
		"tokenpulse.time_to_first_output_token.percentile",
		"tokenpulse.tokens_per_chunk",
		"tokenpulse.tokens_per_chunk.percentile",
		"tokenpulse.trace.time_to_answer.percentile",
	}, off)
	require.True(t, Selection{"tokenpulse.output_token_rate": true}.Has("tokenpulse.output_token_rate"))
	require.False(t, Selection{names.Requests: false}.Has(names.Requests))
}

// allOff switches every metric off but these.
func allOff(but ...string) func(*Options) {
	return func(o *Options) {
		for _, name := range MetricNames() {
			o.Metrics[name] = slices.Contains(but, name)
		}
	}
}

func TestRecord_MetricsThatAreOffTakeNoMemory(t *testing.T) {
	const held = 200
	cost := func(change func(*Options), r *Contribution) uint64 {
		before := heap()
		e := newTestEngine(change)
		r.Arrival = e.at(0)
		for i := range held {
			r.Dimensions = []string{fmt.Sprint("model-", i)}
			e.Record(r)
		}
		e.Collect(e.at(0), func(*Snapshot) {})
		after := heap()
		require.Equal(t, held, e.Held())
		return (after - before) / held
	}
	full := typical(rand.New(rand.NewPCG(1, 2)), "m")
	full.Verdicts.Add("tpot", slo.Bad)
	off := cost(allOff(), full)
	bare := cost(nil, &Contribution{Vantage: full.Vantage})
	on := cost(nil, full)
	t.Logf("bytes per series: %d off, %d of a request without values, %d on", off, bare, on)
	require.Less(t, off, bare+bare/4)
	require.Greater(t, on, 4*bare, "the request has what takes memory")
}

// The gauges of a histogram that is off still follow their window, and the histogram
// without its gauges keeps no window.
func TestRecord_HistogramAndGaugesAreSwitchedApart(t *testing.T) {
	for _, q := range []numbers.ID{numbers.TimeToFirstToken, numbers.InterTokenLatency} {
		name := q.Row().Metric.Name
		for _, on := range []string{name, name + names.SuffixPercentile} {
			e := newTestEngine(allOff(on))
			r := answered("m", e.at(0), 0.5)
			*r.Distribution(numbers.InterTokenLatency) = distribution(0.5)
			r.TraceID[0] = 1
			e.Record(r)
			got := e.snapshotOf(t, q)
			if on == name {
				require.EqualValues(t, 1, got.Sketch.Count(), on)
				require.NotEmpty(t, got.Exemplars, on)
				require.Empty(t, got.Quantiles, on)
			} else {
				require.Zero(t, got.Sketch.Count(), on)
				require.Empty(t, got.Exemplars, on)
				require.Len(t, got.Quantiles, 3*len(windowedQuantiles), on)
				require.Equal(t, 0.5, got.Quantiles[0].Value, on)
			}
		}
	}
}

func (e *Engine) snapshotOf(t *testing.T, q numbers.ID) (d DistributionSnapshot) {
	t.Helper()
	visited := 0
	e.Collect(e.at(0), func(s *Snapshot) {
		visited++
		d = s.Outcomes[Success].Distributions[q]
	})
	require.Equal(t, 1, visited)
	return d
}

func TestRecord_CountersThatAreOffAreMissing(t *testing.T) {
	e := newTestEngine(allOff("tokenpulse.stalls"))
	r := request("m", e.at(0))
	for _, id := range numbers.Sums {
		r.SetValue(id, 1)
	}
	for reason := latency.Present + 1; reason < latency.NumAbsences; reason++ {
		for i := range r.Latency.Absences {
			r.Latency.Absences[i] = reason
		}
		e.Record(r)
	}
	for cause := range names.FailureCauses {
		r.Failure = optional.Of(slo.Cause(cause))
		e.Record(r)
	}
	e.Collect(e.at(0), func(s *Snapshot) {
		for c := range counts {
			_, ok := s.Count(c)
			require.Equal(t, c == CountOf(numbers.StallCount), ok, Counters[c])
		}
	})
}

// Collect reuses one snapshot for all series: an outcome that only the first has is empty
// in the second.
func TestCollect_OutcomesDoNotLeakIntoTheNextSeries(t *testing.T) {
	e := newTestEngine(nil)
	failed := answered("a", e.at(0), 0.1)
	failed.Outcome = Error
	e.Record(failed)
	e.Record(request("b", e.at(0)))
	e.Collect(e.at(0), func(s *Snapshot) {
		require.Equal(t, s.Dimensions[0] == "b", s.Outcomes[Error].Empty())
	})
}

// Collect reuses one snapshot for all series: gauges of the first must not stay.
func TestCollect_GaugesDoNotLeakIntoTheNextSeries(t *testing.T) {
	e := newTestEngine(allOff("tokenpulse.time_to_first_token" + names.SuffixPercentile))
	e.Record(answered("a", e.at(0), 0.1))
	e.Record(request("b", e.at(0)))
	e.Collect(e.at(0), func(s *Snapshot) {
		require.Equal(t, s.Dimensions[0] == "a", len(s.Outcomes[Success].Distributions[numbers.TimeToFirstToken].Quantiles) > 0)
	})
}
