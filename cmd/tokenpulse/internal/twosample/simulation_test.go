// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

var (
	runs  = flag.Int("runs", 0, "simulated comparisons of each row of the table in docs/offline.md; 0 runs a short form only")
	first = flag.Uint64("first", 1, "first seed")
)

// worlds are those of docs/offline.md.
func worlds(t testing.TB) []world {
	recorded := simulated.Recorded(t)[0]
	one := func(name string, arm func(*rand.Rand, int) []served) world { return world{name: name, arm: arm} }
	return []world{
		one("independent", traffic{tail: logLogistic, replicas: 4}.arm),
		one("heavy tails", traffic{tail: heavy, replicas: 4}.arm),
		one("load of 20 s, shared by replicas", traffic{tail: logLogistic, replicas: 4, common: process{0.3, 20}}.arm),
		one("spikes of half a minute", traffic{tail: logLogistic, replicas: 4, common: process{0.15, 20}, spikes: true}.arm),
		one("load of 20 s, of each replica", traffic{tail: logLogistic, replicas: 4, of: process{0.3, 20}}.arm),
		one("2 replicas that differ", traffic{tail: logLogistic, replicas: 2, of: process{0.1, 20}, replica: 0.05}.arm),
		one("4 replicas that differ", traffic{tail: logLogistic, replicas: 4, of: process{0.1, 20}, replica: 0.05}.arm),
		one("16 replicas that differ", traffic{tail: logLogistic, replicas: 16, of: process{0.1, 20}, replica: 0.05}.arm),
		one("a queue per replica, 50% busy", queues{4, 0.5}.arm),
		one("a queue, 80% busy", queues{1, 0.8}.arm),
		one("an engine, 60% busy", engines{recorded, 1, 0.6, false}.arm),
		one("an engine, 80% busy", engines{recorded, 1, 0.8, false}.arm),
		one("4 engines, 60% busy", engines{recorded, 4, 0.6, false}.arm),
		one("16 engines, 60% busy", engines{recorded, 16, 0.6, false}.arm),
		one("an engine, overloaded in bursts", engines{recorded, 1, 0.6, true}.arm),
		one("4 engines, overloaded in bursts", engines{recorded, 4, 0.6, true}.arm),
		{name: "longer prompts of the candidate", arm: traffic{tail: logLogistic, replicas: 4, long: 0.3}.arm, candidate: traffic{tail: logLogistic, replicas: 4, long: 0.5}.arm},
		{name: "slightly longer prompts", arm: traffic{tail: logLogistic, replicas: 4, long: 0.3}.arm, candidate: traffic{tail: logLogistic, replicas: 4, long: 0.34}.arm},
		one("runs that differ, 3 of each arm", traffic{tail: logLogistic, runs: 3, run: 0.05}.arm),
		one("runs that differ, 8 of each arm", traffic{tail: logLogistic, runs: 8, run: 0.05}.arm),
		{name: "runs that differ, 8 and 1", arm: traffic{tail: logLogistic, runs: 8, run: 0.05}.arm, candidate: traffic{tail: logLogistic, runs: 1, run: 0.05}.arm},
		{name: "runs that differ, 1 of each arm", arm: traffic{tail: logLogistic, runs: 1, run: 0.05}.arm, unresolvable: true},
	}
}

// trial compares two arms of a world.
type trial struct {
	world
	n     int
	slo   objective
	cases []kase
}

// kase is what is asked about a candidate.
type kase struct {
	effect   effect
	question Question
}

// run returns the verdict of each case.
func (w *trial) run(seed uint64) (all []Verdict) {
	r := rand.New(rand.NewPCG(seed, 1))
	served, of := w.arm(r, w.n), w.candidate
	if of == nil {
		of = w.arm
	}
	base, candidate := record(r, served, effect{}, w.slo), of(r, w.n)
	for _, c := range w.cases {
		result, err := Compare(base, record(r, candidate, c.effect, w.slo), c.question)
		if err != nil {
			panic(err)
		}
		all = append(all, result.Verdict)
	}
	return all
}

// objective returns an SLO that a twentieth of the requests miss.
func (w *trial) objective() objective {
	all := w.arm(rand.New(rand.NewPCG(0, 0)), 5000)
	slices.SortFunc(all, func(a, b served) int {
		if a.latencies[TimeToFirstToken] < b.latencies[TimeToFirstToken] {
			return -1
		}
		return 1
	})
	return objective{all[len(all)*93/100].latencies[TimeToFirstToken], 0.07}
}

var sizes = flag.String("sizes", "200,1000,5000", "")
var only = flag.String("only", "", "")

func TestSimulate(t *testing.T) {
	if *runs == 0 {
		t.Skip("-runs is 0")
	}
	speed := Question{Tolerance: 0.1, OddsTolerance: 0.5, Alpha: 0.05, Indicators: []Indicator{TimeToFirstToken, TimePerOutputToken}}
	slo := Question{Tolerance: 0.1, OddsTolerance: 0.5, Alpha: 0.05, SLOs: []string{"all"}}
	one := effect{}
	one.slower[TimeToFirstToken] = 1.1
	cases := []kase{{effect{}, speed}, {slower(0.1), speed}, {one, speed}, {slower(0.15), speed}, {slower(0.2), speed},
		{effect{}, slo}, {effect{odds: 1.5}, slo}, {effect{odds: 2}, slo}}
	for _, size := range strings.Split(*sizes, ",") {
		n, _ := strconv.Atoi(size)
		for _, w := range worlds(t) {
			if !strings.Contains(w.name, *only) {
				continue
			}
			tr := trial{world: w, n: n, cases: cases}
			tr.slo = tr.objective()
			trials := simulated.Each(*first, *runs, tr.run)
			fmt.Printf("%5d %-34s", n, w.name)
			for i := range cases {
				count := map[Verdict]int{}
				for _, v := range trials {
					count[v[i]]++
				}
				f := 100 / float64(*runs)
				fmt.Printf("| e%4.1f b%4.1f w%4.1f ", f*float64(count[Equivalent]), f*float64(count[Better]), f*float64(count[Worse]))
			}
			fmt.Println()
		}
	}
}
