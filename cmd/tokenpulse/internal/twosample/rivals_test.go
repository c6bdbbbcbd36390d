// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

// method is a method to find limits of the ratio of two percentiles.
type method struct {
	name string
	// limits returns the logarithms of the one-sided 97.5% limits.
	limits func(r *rand.Rand, base, cand []served, q float64) (lower, upper float64)
}

const rivalAlpha = 0.025

var rivals = []method{
	{"this method", func(_ *rand.Rand, base, cand []served, q float64) (lower, upper float64) {
		c := newComparison([2]*Arm{record(base, effect{}, 1), record(cand, effect{}, 1)})
		n, _ := c.percentile(TimeToFirstToken, q, false)
		return difference(&n.sides[baseline], &n.sides[candidate], rivalAlpha)
	}},
	{"bootstrap of requests within replicas", bootstrap(func(r *rand.Rand, all []served) []float64 {
		replicas, weights := map[int][]int{}, make([]float64, len(all))
		for i, s := range all {
			replicas[s.replica] = append(replicas[s.replica], i)
		}
		for k := range len(replicas) {
			for range replicas[k] {
				weights[replicas[k][r.IntN(len(replicas[k]))]]++
			}
		}
		return weights
	})},
	{"bootstrap of 32 blocks of time", bootstrap(func(r *rand.Rand, all []served) []float64 {
		var times [32]float64
		for range times {
			times[r.IntN(len(times))]++
		}
		weights := make([]float64, len(all))
		for i := range all {
			weights[i] = times[blockOf(all, i, len(times))]
		}
		return weights
	})},
	{"t test of the percentiles of 8 blocks", func(_ *rand.Rand, base, cand []served, q float64) (lower, upper float64) {
		const blocks = 8
		of := func(all []served) *side {
			var values [blocks]float64
			for b := range values {
				weights := make([]float64, len(all))
				for i := range all {
					if blockOf(all, i, blocks) == b {
						weights[i] = 1
					}
				}
				values[b] = weightedQuantile(all, order(all), weights, q)
			}
			var mean, variance float64
			for _, v := range values {
				mean += v / blocks
			}
			for _, v := range values {
				variance += (v - mean) * (v - mean) / (blocks - 1)
			}
			return normal(mean, variance, blocks)
		}
		return difference(of(base), of(cand), rivalAlpha)
	}},
	{"permutation of 64 blocks of time", permutation},
}

// The form with rivals: how often each method rejects the true ratio of two arms that are alike, of the time to first token. That should be 5%.
func TestSimulate_Rivals(t *testing.T) {
	if *runs == 0 || !*rival {
		t.Skip("-runs is 0, or -rivals is not set")
	}
	const n = 1000
	fmt.Printf("\n%d requests of each arm, %d runs\n\n| situation |", n, *runs)
	for _, m := range rivals {
		fmt.Printf(" %s: p50, p95 |", m.name)
	}
	fmt.Printf("\n|---%s|\n", strings.Repeat("|---", len(rivals)))
	for _, w := range worlds(t) {
		if w.candidate != nil || strings.Contains(w.name, "runs") || !strings.Contains(w.name, *only) {
			continue // other methods know no mix and no runs
		}
		fmt.Printf("| %s |", w.name)
		var wrong [5][2]int
		for _, rejected := range simulated.Each(*first, *runs, func(seed uint64) (rejected [5][2]bool) {
			r := rand.New(rand.NewPCG(seed, 1))
			base, cand := w.arm(r, n), w.arm(r, n)
			for i, m := range rivals {
				for j, q := range Percentiles {
					lower, upper := m.limits(r, base, cand, q)
					rejected[i][j] = lower > 0 || upper < 0
				}
			}
			return rejected
		}) {
			for i := range rejected {
				for j, is := range rejected[i] {
					if is {
						wrong[i][j]++
					}
				}
			}
		}
		for _, k := range wrong {
			fmt.Printf(" %s, %s |", percent(k[0], *runs), percent(k[1], *runs))
		}
		fmt.Println()
	}
}

// blockOf returns which of a number of blocks of the same length the request with number i is in. Requests are in the order of time.
func blockOf(all []served, i, blocks int) int {
	first, last := all[0].at, all[len(all)-1].at
	return min(blocks-1, int(float64(blocks)*(all[i].at-first)/(last-first)))
}

// order returns the requests by their time to first token.
func order(all []served) []int {
	by := make([]int, len(all))
	for i := range by {
		by[i] = i
	}
	slices.SortFunc(by, func(a, b int) int {
		if all[a].latencies[TimeToFirstToken] < all[b].latencies[TimeToFirstToken] {
			return -1
		}
		return 1
	})
	return by
}

// weightedQuantile returns the logarithm of a percentile of requests that count several times.
func weightedQuantile(all []served, order []int, weights []float64, q float64) float64 {
	var sum, below float64
	for _, w := range weights {
		sum += w
	}
	for _, i := range order {
		if below += weights[i]; below >= q*sum {
			return math.Log(all[i].latencies[TimeToFirstToken])
		}
	}
	return math.NaN()
}

// bootstrap returns the limits between which the ratios of resampled arms are.
func bootstrap(resample func(*rand.Rand, []served) []float64) func(*rand.Rand, []served, []served, float64) (lower, upper float64) {
	return func(r *rand.Rand, base, cand []served, q float64) (lower, upper float64) {
		const times = 999
		differences, b, c := make([]float64, times), order(base), order(cand)
		for i := range differences {
			differences[i] = weightedQuantile(cand, c, resample(r, cand), q) - weightedQuantile(base, b, resample(r, base), q)
		}
		slices.Sort(differences)
		k := int(rivalAlpha * (times + 1))
		return differences[k-1], differences[times-k]
	}
}

// permutation exchanges blocks of both arms, which is a test that the arms are alike: its limits are infinite, or 0 on the side on which
// it rejects that.
func permutation(r *rand.Rand, base, cand []served, q float64) (lower, upper float64) {
	const blocks, times = 32, 499
	all := slices.Concat(base, cand)
	by, block := order(all), make([]int, len(all))
	for i := range all {
		if i < len(base) {
			block[i] = blockOf(base, i, blocks)
		} else {
			block[i] = blocks + blockOf(cand, i-len(base), blocks)
		}
	}
	of := make([]int, 2*blocks)
	for b := range of {
		of[b] = b / blocks
	}
	statistic := func() float64 {
		var weights [2][]float64
		for arm := range weights {
			weights[arm] = make([]float64, len(all))
		}
		for i, b := range block {
			weights[of[b]][i] = 1
		}
		return weightedQuantile(all, by, weights[candidate], q) - weightedQuantile(all, by, weights[baseline], q)
	}
	seen, above, below := statistic(), 1.0, 1.0
	for range times {
		r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		if s := statistic(); s >= seen {
			above++
		} else {
			below++
		}
	}
	lower, upper = math.Inf(-1), math.Inf(1)
	if above/(times+1) <= rivalAlpha {
		lower = math.SmallestNonzeroFloat64
	}
	if below/(times+1) <= rivalAlpha {
		upper = -math.SmallestNonzeroFloat64
	}
	return lower, upper
}
