// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// values returns a group with values in two bands, and the values with the weights that the bands give them.
func values(w *weights) (g group, all []float64, each []float64) {
	r := rand.New(rand.NewPCG(4, 2))
	for _, in := range []struct{ band, n int }{{2, 3000}, {5, 800}} {
		c := g.band(in.band)
		for range in.n {
			v := math.Exp(float64(in.band) + r.NormFloat64())
			c.values[TimeToFirstToken].Add(v, 1)
			c.measured[TimeToFirstToken]++
			all, each = append(all, v), append(each, w[in.band]/float64(in.n))
		}
	}
	return g, all, each
}

// A quantile of the standardised mix is the value up to which the weights of the sorted values add up to it.
func TestDistribution_QuantileAgreesWithSortedValues(t *testing.T) {
	w := weights{2: 0.25, 5: 0.75}
	g, all, each := values(&w)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if all[a] < all[b] {
			return -1
		}
		return 1
	})
	d := newDistribution(&g, TimeToFirstToken, &w)
	for _, q := range []float64{0.01, 0.05, 0.24, 0.5, 0.8, 0.95, 0.999} {
		var sum float64
		for _, i := range order {
			if sum += each[i]; sum >= q {
				require.InEpsilon(t, all[i], d.quantile(q), 0.011, "%v", q)
				break
			}
		}
	}
	require.InEpsilon(t, all[order[len(order)-1]], d.quantile(1), 1e-9)
	require.InEpsilon(t, all[order[0]], d.quantile(0), 1e-9)
}

func TestDistribution_MissingValuesAreTheSlowest(t *testing.T) {
	w := weights{2: 0.25, 5: 0.75}
	g, _, _ := values(&w)
	all := newDistribution(&g, TimeToFirstToken, &w)
	for b := range w {
		w[b] *= 0.9
	}
	most := newDistribution(&g, TimeToFirstToken, &w)
	require.InEpsilon(t, all.quantile(0.5), most.quantile(0.45), 1e-9)
	require.Equal(t, math.Inf(1), most.quantile(0.95))
}

func TestDistribution_Zeros(t *testing.T) {
	g := group{}
	g.band(0).values[TimeToFirstToken].Add(0, 6)
	g.band(0).values[TimeToFirstToken].Add(1, 4)
	d := newDistribution(&g, TimeToFirstToken, &weights{1})
	require.Zero(t, d.quantile(0.5))
	require.InEpsilon(t, 1, d.quantile(0.9), 0.011)
	require.Equal(t, uint64(4), above(&g[0].values[TimeToFirstToken], zeros))
	require.Equal(t, zeros, d.threshold(0.5), "its upper bound is nearest to the median, of which it has 0.6")
}

// Between two thresholds, the one that divides the values more like the quantile counts, and both parts have values.
func TestDistribution_ThresholdDividesValues(t *testing.T) {
	g := group{}
	s := &g.band(0).values[TimeToFirstToken]
	for _, v := range []float64{1, 2, 4, 8} {
		s.Add(v, 25)
	}
	d := newDistribution(&g, TimeToFirstToken, &weights{1})
	for q, above := range map[float64]float64{0.3: 2, 0.4: 4, 0.95: 8, 0.99: 8, 0.01: 2} {
		require.Less(t, sketch.UpperBound(d.threshold(q)), above, "%v", q)
		require.GreaterOrEqual(t, sketch.UpperBound(d.threshold(q)), above/2, "%v", q)
	}
}
