// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var runs = flag.Int("runs", 0, "simulated runs of each row in the tables of docs/canary.md; 0 runs a short form only")

// kind is what a simulated pair compares.
type kind struct {
	name      string
	settings  Settings
	tolerance float64
}

var kinds = []kind{
	{"an SLO, tolerance 0.5", Settings{}, 0.5},
	{"p95, tolerance 0.1", Settings{Percentile: 0.95, Tolerance: 0.1}, 0.1},
}

// worse returns an experiment whose candidate is worse by a share: of its odds for an SLO, of its
// latencies for a percentile.
func (k kind) worse(s situation, by float64) experiment {
	e := experiment{
		situation: s, settings: k.settings, question: Question{Alpha: 0.05, Tolerance: k.tolerance},
		oddsRatio: 1, slower: 1, hours: 1,
	}
	if k.settings.Percentile > 0 {
		e.slower += by
	} else {
		e.oddsRatio += by
	}
	return e
}

// tally counts what outcomes have in common.
type tally struct{ failed, passed, undecided, wrong int }

// count counts the outcomes of a candidate that is worse by a share.
func (k kind) count(outcomes []outcome, by float64) (n tally) {
	for i := range outcomes {
		o := &outcomes[i]
		for _, is := range [...]struct {
			count *int
			so    bool
		}{
			{&n.failed, o.failed > 0},
			{&n.passed, o.passed > 0},
			{&n.undecided, o.last.Verdict == Undecided},
			{&n.wrong, k.wrong(o, by)},
		} {
			if is.so {
				*is.count++
			}
		}
	}
	return n
}

// wrong reports whether a run ever passed a candidate that is worse by the tolerance or more, or failed one that is not worse
// by more than that. A guard has no tolerance: it is wrong only about a candidate that is as good.
func (k kind) wrong(o *outcome, by float64) bool {
	failed := o.failed > 0 && (o.failedBy == Difference || by == 0)
	return by >= k.tolerance && o.passed > 0 || by <= k.tolerance && failed
}

// In each situation, at most alpha of all runs ever fail a candidate that is as good, or decide on one
// exactly at the tolerance. A larger alpha shows this with few runs.
func TestSimulation_FalseVerdictsAgreeWithAlpha(t *testing.T) {
	const few, alpha, hours = 10, 0.4, 0.5
	for _, k := range kinds {
		for _, s := range situations {
			t.Run(k.name+", "+s.name, func(t *testing.T) {
				for _, by := range []float64{0, k.tolerance} {
					e := k.worse(s, by)
					e.question.Alpha, e.hours = alpha, hours
					until := onceDecided
					if by == 0 {
						until = never
					}
					n := k.count(e.repeat(few, until), by)
					require.LessOrEqual(t, upperLimit(n.wrong, few), alpha, "%+v", n)
				}
			})
		}
	}
}

// All of 90 runs miss a share p with the probability (1-p)^90.
func TestUpperLimit(t *testing.T) {
	require.InDelta(t, 1-math.Pow(0.01, 1./90), upperLimit(0, 90), 1e-9)
	require.InDelta(t, 1, upperLimit(90, 90), 0)
}

// The long form: make suite-canary prints the tables of docs/canary.md.
func TestSimulate(t *testing.T) {
	if *runs == 0 {
		t.Skip("-runs is 0")
	}
	printNeeded()
	for _, k := range kinds {
		fmt.Printf("\n%s, %d runs of one hour, alpha 0.05:\n\n", k.name, *runs)
		fmt.Println("| situation | candidate | `fail` | `pass` | `undecided` at the end | first verdict | upper limit of the wrong verdict |")
		fmt.Println("|---|---|---|---|---|---|---|")
		for _, s := range situations {
			for _, part := range []float64{0, 0.5, 1, 2} {
				by := part * k.tolerance
				e := k.worse(s, by)
				outcomes := e.repeat(*runs, never)
				n := k.count(outcomes, by)
				limit := upperLimit(n.wrong, *runs)
				fmt.Printf("| %s | %s | %s | %s | %s | %s | %.2g%% |\n", s.name, worseBy(by),
					percent(n.failed, *runs), percent(n.passed, *runs), percent(n.undecided, *runs),
					median(outcomes, (*outcome).decided), 100*limit)
				if limit > e.question.Alpha {
					t.Errorf("%s, %s, %s: wrong in %d of %d runs", k.name, s.name, worseBy(by), n.wrong, *runs)
				}
			}
		}
	}
	printDetection()
}

func worseBy(by float64) string {
	if by == 0 {
		return "as good"
	}
	return fmt.Sprintf("%.0f%% worse", 100*by)
}

func percent(k, n int) string { return fmt.Sprintf("%.3g%%", 100*float64(k)/float64(n)) }

// printNeeded prints how many requests an SLO's pair needs to pass a candidate whose share of bad
// requests is exactly the baseline's.
func printNeeded() {
	fmt.Print("| tolerance | bad requests in each arm, equal shares | candidate's bad requests, share 20% | its requests, 5% bad | 1% bad |\n|---|---|---|---|---|\n")
	for _, tolerance := range []float64{0.1, 0.2, 0.3, 0.5, 1} {
		fmt.Printf("| %g | %d | %d | %d | %d |\n", tolerance, needed(tolerance, 20, 1), needed(tolerance, 20, 4),
			20*needed(tolerance, 20, 4), 100*needed(tolerance, 100, 4))
	}
}

// needed returns the candidate's number of bad requests until its pair passes at alpha 0.05. One of
// every requests is bad, and the baseline has times as many.
func needed(tolerance float64, every, times uint64) (bad uint64) {
	var l likelihood
	for ; ; bad += 2 {
		e := l.evidence()
		if rejects(e.below[roundedDown(1+tolerance)], passDivisor, 0.05) {
			return bad
		}
		l.add(trials{2 * every * times, 2 * times}, trials{2 * every, 2}, 1)
	}
}

// printDetection prints how long it takes to show that a candidate's latencies are larger, and until a verdict.
func printDetection() {
	const hours = 6
	n := max(*runs/10, 20)
	fmt.Printf("\nMedian time in %d runs of %d hours, and the share of runs in which it happens:\n\n", n, hours)
	fmt.Print("| situation | slower by | SLO: difference shown | SLO: verdict | p95: difference shown | p95: verdict | Mann-Whitney, each 5 minutes |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, s := range situations[:2] {
		for _, slower := range []float64{1, 1.05, 1.1, 1.15, 1.2, 1.5} {
			fmt.Printf("| %s | %.0f%% |", s.name, 100*(slower-1))
			for _, k := range kinds {
				e := k.worse(s, 0)
				e.slower, e.hours = slower, hours
				outcomes := e.repeat(n, func(o *outcome) bool { return o.decided() > 0 && (o.shown > 0 || slower == 1) })
				fmt.Printf(" %s | %s |", median(outcomes, func(o *outcome) time.Duration { return o.shown }), verdicts(outcomes))
			}
			fmt.Printf(" %s |\n", detected(inParallel(n, func(seed uint64) time.Duration {
				return mannWhitney(s, slower, hours, seed)
			})))
		}
	}
}

// verdicts returns the median times of the runs that first pass, and of those that first fail.
func verdicts(outcomes []outcome) string {
	var all []string
	for _, of := range [...]struct {
		verdict string
		first   func(o *outcome) time.Duration
	}{
		{"pass", func(o *outcome) time.Duration { return o.passed }},
		{"fail", func(o *outcome) time.Duration { return o.failed }},
	} {
		first := median(outcomes, func(o *outcome) time.Duration {
			if of.first(o) == o.decided() {
				return of.first(o)
			}
			return 0
		})
		if first != none {
			all = append(all, fmt.Sprintf("`%s` %s", of.verdict, first))
		}
	}
	return cmp.Or(strings.Join(all, ", "), none)
}

// median returns the median of a time of each run, and the share of runs in which it is not 0.
func median(outcomes []outcome, of func(o *outcome) time.Duration) string {
	var times []time.Duration
	for i := range outcomes {
		times = append(times, of(&outcomes[i]))
	}
	return detected(times)
}

// none is a median time of what never happens.
const none = "none"

// detected returns the median of the times that are not 0, and their share.
func detected(times []time.Duration) string {
	n := len(times)
	times = slices.DeleteFunc(times, func(d time.Duration) bool { return d == 0 })
	if len(times) == 0 {
		return none
	}
	slices.Sort(times)
	return fmt.Sprintf("%.0f min (%s)", times[len(times)/2].Minutes(), percent(len(times), n))
}

// mannWhitney returns when a run is first failed by a one-sided Mann-Whitney test at 0.05 of the
// latencies of the requests that ended in the last five minutes, asked every five minutes.
func mannWhitney(s situation, slower float64, hours int, seed uint64) (failed time.Duration) {
	const length = 300
	w := world{situation: s, random: rand.New(rand.NewPCG(seed, 1)), oddsRatio: 1, slower: slower}
	var requests []served
	w.run(hours*3600/tick, func(now int, ended []served) bool {
		requests = append(requests, ended...)
		if now%length != 0 {
			return true
		}
		if largerThan(requests) > 1.6449 {
			failed = time.Duration(now) * time.Second
		}
		requests = requests[:0]
		return failed == 0
	})
	return failed
}

// largerThan returns how many standard deviations the candidate's rank sum is above its mean.
func largerThan(requests []served) float64 {
	slices.SortFunc(requests, func(a, b served) int { return cmp.Compare(a.latency, b.latency) })
	var ranks, n float64
	for i, r := range requests {
		if r.arm == Candidate {
			ranks += float64(i + 1)
			n++
		}
	}
	all := float64(len(requests))
	return (ranks - n*(all+1)/2) / math.Sqrt(n*(all-n)*(all+1)/12)
}
