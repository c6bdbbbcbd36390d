// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// spreadOut returns n values whose percentile q is 100^q. So a bucket has a small share of them.
func spreadOut(n int) *sketch.Sketch {
	s := new(sketch.Sketch)
	for i := range n {
		s.Add(math.Pow(100, (float64(i)+0.5)/float64(n)), 1)
	}
	return s
}

// Bounds that hold at any time are wider than those of a test that is made once, of 1.96 standard deviations of a binomial
// count, but not three times as wide.
func TestPercentileOf_BoundsAreSomewhatWiderThanThoseOfOneTest(t *testing.T) {
	const bucket = 1.0109
	for _, n := range []int{500, 2000, 20_000} {
		for _, q := range []float64{0.5, 0.9, 0.95} {
			t.Run(fmt.Sprint(n, " ", q), func(t *testing.T) {
				got := percentileOf(spreadOut(n), q, 1, 0.1)
				deviation := 1.96 * math.Sqrt(q*(1-q)/float64(n))
				require.InEpsilon(t, math.Pow(100, q), got.Estimate, 0.0055)
				require.Less(t, got.Lower, bucket*math.Pow(100, q-deviation))
				require.Greater(t, got.Upper, math.Pow(100, q+deviation)/bucket)
				require.Greater(t, got.Lower, math.Pow(100, q-3*deviation)/bucket)
				require.Less(t, got.Upper, bucket*math.Pow(100, q+3*deviation))
			})
		}
	}
}

func TestPercentileOf_DispersionCountsAsFewerValues(t *testing.T) {
	const bucket = 0.0109
	fewer, dispersed := percentileOf(spreadOut(5000), 0.9, 1, 0.05), percentileOf(spreadOut(20_000), 0.9, 4, 0.05)
	require.InEpsilon(t, fewer.Lower, dispersed.Lower, bucket)
	require.InEpsilon(t, fewer.Upper, dispersed.Upper, bucket)
	require.Less(t, dispersed.Lower, percentileOf(spreadOut(20_000), 0.9, 1, 0.05).Lower)
}

func TestPercentileOf_FewValuesLeaveBoundsOpen(t *testing.T) {
	require.Equal(t, unknownText, fmt.Sprint(percentileOf(new(sketch.Sketch), 0.95, 1, 0.05)))
	one := percentileOf(spreadOut(1), 0.95, 1, 0.05)
	require.InEpsilon(t, 10, one.Estimate, 0.0055)
	require.True(t, math.IsNaN(one.Lower) && math.IsNaN(one.Upper))
	many := percentileOf(spreadOut(50), 0.95, 1, 0.05)
	require.Greater(t, many.Lower, 1.0)
	require.True(t, math.IsNaN(many.Upper), "all of 50 values may be below their 95th percentile")
}

// A percentile of 0 divides nothing.
func TestInterval_Over(t *testing.T) {
	require.Equal(t, "{2 1 6}", fmt.Sprint(Interval{4, 3, 6}.over(Interval{2, 1, 3})))
	require.Equal(t, "{NaN 1 NaN}", fmt.Sprint(Interval{4, 3, 6}.over(Interval{0, 0, 3})))
	require.Equal(t, "{2 NaN NaN}", fmt.Sprint(Interval{4, math.NaN(), 6}.over(Interval{2, math.NaN(), 3})))
}

// Asked after each tick of half an hour, all bounds hold in all but a share alpha of runs, if the requests are independent.
func TestPercentileOf_BoundsHoldHoweverOftenTheyAreAskedFor(t *testing.T) {
	const (
		slower, alpha, few = 1.1, 0.4, 20
		rounding           = 1.0055
	)
	e := kinds[1].worse(situations[0], slower-1)
	e.question.Alpha, e.hours = alpha, 0.5
	p := e.settings.Percentile
	truth := math.Pow(p/(1-p), latencyShape)
	missed := inParallel(few, func(seed uint64) (missed bool) {
		e.run(seed, func(o *outcome) bool {
			for of, i := range map[float64]*Interval{
				truth: &o.last.Baseline.Interval, slower * truth: &o.last.Candidate.Interval, slower: &o.last.PercentileRatio,
			} {
				missed = missed || i.Lower > of*rounding*rounding || i.Upper < of/rounding/rounding
			}
			return missed
		})
		return missed
	})
	n := 0
	for _, m := range missed {
		if m {
			n++
		}
	}
	require.LessOrEqual(t, upperLimit(n, few), alpha)
}
