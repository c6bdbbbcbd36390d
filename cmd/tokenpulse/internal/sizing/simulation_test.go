// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arrivals"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/synthetic"
	"github.com/tokenpulse/tokenpulse/internal/batching"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

var sweeps = flag.Int("sweeps", 0, "simulated sweeps of the table; 0 prints none")

// engines are synthetic ones, whose limit for an objective is known.
type engines struct {
	config    synthetic.Config
	objective float64
	limit     batching.Limit
}

func newEngines(t *testing.T, n int, objective float64) *engines {
	t.Helper()
	e := &engines{objective: objective, config: synthetic.Config{
		Engines: n, Rate: 1, Models: []synthetic.Model{{Name: "m", Speed: 1}}, Prefill: synthetic.DefaultPrefill, TPOT: synthetic.DefaultTPOT,
	}}
	var ok bool
	e.limit, ok = e.config.Limit(objective)
	require.True(t, ok)
	return e
}

// run simulates minutes at a load, as a factor of the limit.
func (e *engines) run(seed uint64, minutes, factor float64) Run {
	config := e.config
	config.Seed, config.Rate = seed, factor*e.limit.Requests*float64(config.Engines)
	config.Requests = int(minutes * 60 * config.Rate)
	replicas := map[*stream.Resource]uint16{}
	var all []arrivals.Request
	for s := range synthetic.New(config).Streams {
		if replicas[s.Resource] == 0 {
			replicas[s.Resource] = uint16(len(replicas) + 1)
		}
		q := arrivals.Request{Start: s.Start, Seconds: float32(float64(s.LastTime()-s.Start) / 1e9), Vantage: s.Vantage, Replica: replicas[s.Resource], Verdict: slo.Bad}
		if s.End.Usage != nil {
			q.Sized, q.Output = true, uint32(*s.End.Usage.OutputTokens)
			q.Prompt, q.Cached = uint32(*s.End.Usage.InputTokens), uint32(*s.End.Usage.CachedInputTokens)
			first, last := s.Chunks[0].Time, s.Chunks[len(s.Chunks)-1].Time
			if first-s.Start <= int64(synthetic.LimitTTFT) && last-first <= int64(synthetic.LimitTPOT)*int64(len(s.Chunks)-1) {
				q.Verdict = slo.Good
			}
		}
		all = append(all, q)
	}
	return Measure(fmt.Sprint(factor), all, all[0].Vantage, 0)
}

// sweep simulates runs at several loads.
func (e *engines) sweep(seed uint64, minutes float64, factors ...float64) *Limit {
	var runs []Run
	for i, f := range factors {
		runs = append(runs, e.run(seed*100+uint64(i), minutes, f))
	}
	return Find(runs, e.objective)
}

// of returns the load of a run over the limit.
func (e *engines) of(r *Run) float64 { return r.Load[capacity.Requests] / e.limit.Requests }

// The limit is known to 3%.
const exact = 0.03

func TestFind_BracketsTheLimitOfEngines(t *testing.T) {
	e := newEngines(t, 2, 0.95)
	for seed := range uint64(3) {
		l := e.sweep(seed, 10, 0.4, 0.6, 0.8, 1.2, 1.4)
		require.Empty(t, l.Reason)
		require.LessOrEqual(t, e.of(l.Met), 1+exact)
		require.GreaterOrEqual(t, e.of(l.Met), 0.35)
		require.GreaterOrEqual(t, e.of(l.Missed), 1-exact)
		require.LessOrEqual(t, e.of(l.Missed), 1.5)
		require.Equal(t, 2, l.Met.Replicas)
		for k, truth := range map[capacity.Kind]float64{capacity.OutputTokens: e.limit.Output, capacity.PromptTokens: e.limit.Prompt} {
			require.InEpsilon(t, e.of(l.Met), l.Met.Load[k]/truth, 0.12, "lengths are random")
		}
	}
}

// TestSimulate prints the tables of docs/offline.md.
func TestSimulate(t *testing.T) {
	if *sweeps == 0 {
		t.Skip("make simulate-sizing runs this")
	}
	lengths := []float64{2, 5, 10, 20}
	fmt.Println("| engines | objective | minutes of a run | limit and a miss | true limit at or above the limit | miss at or above the true limit | limit / true limit: median, p10 to p90 |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, n := range []int{1, 4} {
		for _, objective := range []float64{0.9, 0.95, 0.99} {
			e := newEngines(t, n, objective)
			for _, minutes := range lengths {
				e.row(minutes, simulated.Each(1, *sweeps, func(seed uint64) *Limit {
					return e.sweep(seed, minutes, 0.4, 0.55, 0.7, 0.85, 1, 1.15, 1.3, 1.5)
				}))
			}
		}
	}
	fmt.Println("\n| minutes of a run at 1.05 of the limit | it meets 95% with independent requests (Wilson) | with slots |")
	fmt.Println("|---|---|---|")
	e := newEngines(t, 2, 0.95)
	for _, minutes := range lengths {
		e.certified(minutes, simulated.Each(1, *sweeps, func(seed uint64) Run { return e.run(seed, minutes, 1.05) }))
	}
}

// certified prints how many runs would be taken for ones that meet the objective.
func (e *engines) certified(minutes float64, runs []Run) {
	var requests, slots int
	for i := range runs {
		share, _ := runs[i].Good()
		n, z := float64(runs[i].Eligible), 1.96
		if low := (share + z*z/(2*n) - z*math.Sqrt(share*(1-share)/n+z*z/(4*n*n))) / (1 + z*z/n); low >= e.objective {
			requests++
		}
		if runs[i].Low >= e.objective {
			slots++
		}
	}
	fmt.Printf("| %v | %s | %s |\n", minutes, simulated.Share(requests, len(runs), 0), simulated.Share(slots, len(runs), 0))
}

func (e *engines) row(minutes float64, all []*Limit) {
	var both, missed, above, below int
	var met []float64
	for _, l := range all {
		if l.Reason == "" {
			both++
		}
		if l.Met != nil {
			met = append(met, e.of(l.Met))
			if e.of(l.Met) <= 1+exact {
				below++
			}
		}
		if l.Missed != nil {
			missed++
			if e.of(l.Missed) >= 1-exact {
				above++
			}
		}
	}
	slices.Sort(met)
	at := func(q float64) float64 {
		if len(met) == 0 {
			return math.NaN()
		}
		return met[int(q*float64(len(met)-1)+0.5)]
	}
	fmt.Printf("| %d | %v | %v | %s | %s | %s | %.2f, %.2f to %.2f |\n", e.config.Engines, e.objective, minutes, simulated.Share(both, len(all), 0),
		simulated.Share(below, len(met), 0), simulated.Share(above, missed, 0), at(0.5), at(0.1), at(0.9))
}
