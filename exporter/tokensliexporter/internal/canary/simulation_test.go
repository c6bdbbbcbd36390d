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
type tally struct{ failed, passed, undecided int }

func count(outcomes []outcome) (n tally) {
	for _, o := range outcomes {
		if o.failed > 0 {
			n.failed++
		}
		if o.passed > 0 {
			n.passed++
		}
		if o.last.Verdict == Undecided {
			n.undecided++
		}
	}
	return n
}

// wrong returns the number of runs that are ever wrong about a candidate that is as good, or worse by
// at least the tolerance.
func (n tally) wrong(by float64) int {
	if by == 0 {
		return n.failed
	}
	return n.passed
}

// In each situation, at most alpha of all runs ever fail a candidate that is as good, or pass one
// exactly at the tolerance. A larger alpha shows this with few runs.
func TestSimulation_FalseVerdictsAgreeWithAlpha(t *testing.T) {
	const few, alpha, hours = 10, 0.4, 0.5
	for _, k := range kinds {
		for _, s := range situations {
			t.Run(k.name+", "+s.name, func(t *testing.T) {
				for _, by := range []float64{0, k.tolerance} {
					e := k.worse(s, by)
					e.question.Alpha, e.hours = alpha, hours
					until := oncePassed
					if by == 0 {
						until = onceFailed
					}
					n := count(e.repeat(few, until))
					require.LessOrEqual(t, upperLimit(n.wrong(by), few), alpha, "%+v", n)
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

// The long form: make simulate-canary prints the tables of docs/canary.md.
func TestSimulate(t *testing.T) {
	if *runs == 0 {
		t.Skip("-runs is 0")
	}
	printNeeded()
	for _, k := range kinds {
		fmt.Printf("\n%s, %d runs of one hour, alpha 0.05:\n\n", k.name, *runs)
		fmt.Println("| situation | candidate | `fail` | `pass` | `undecided` at the end | upper limit of the wrong verdict |")
		fmt.Println("|---|---|---|---|---|---|")
		for _, s := range situations {
			for _, by := range []float64{0, k.tolerance, 2 * k.tolerance} {
				e := k.worse(s, by)
				n := count(e.repeat(*runs, never))
				limit := upperLimit(n.wrong(by), *runs)
				fmt.Printf("| %s | %s | %s | %s | %s | %.2g%% |\n", s.name, worseBy(by),
					percent(n.failed, *runs), percent(n.passed, *runs), percent(n.undecided, *runs), 100*limit)
				if limit > e.question.Alpha {
					t.Errorf("%s, %s, %s: wrong in %d of %d runs", k.name, s.name, worseBy(by), n.wrong(by), *runs)
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

// printDetection prints how long it takes to show that a candidate's latencies are larger.
func printDetection() {
	const hours = 6
	n := max(*runs/10, 20)
	fmt.Printf("\nMedian time until a difference is shown in %d runs of %d hours, and the share of runs in which it is:\n\n", n, hours)
	fmt.Print("| situation | slower by | SLO | p95 | Mann-Whitney, each 5 minutes |\n|---|---|---|---|---|\n")
	for _, s := range situations[:2] {
		for _, slower := range []float64{1, 1.05, 1.1, 1.2, 1.5} {
			fmt.Printf("| %s | %.0f%% |", s.name, 100*(slower-1))
			for _, k := range kinds {
				e := k.worse(s, 0)
				e.slower, e.hours = slower, hours
				var times []time.Duration
				for _, o := range e.repeat(n, onceShown) {
					times = append(times, o.shown)
				}
				fmt.Printf(" %s |", detected(times))
			}
			fmt.Printf(" %s |\n", detected(inParallel(n, func(seed uint64) time.Duration {
				return mannWhitney(s, slower, hours, seed)
			})))
		}
	}
}

// detected returns the median of the times that are not 0, and their share.
func detected(times []time.Duration) string {
	n := len(times)
	times = slices.DeleteFunc(times, func(d time.Duration) bool { return d == 0 })
	if len(times) == 0 {
		return "none"
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
