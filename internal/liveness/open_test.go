// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Against a search of all requests: the last first token of one that began earlier.
func TestTurns_BeginWithFirstTokensOfEarlierRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same requests each time
	var known turns
	type answered struct{ begin, first time.Duration }
	var all []answered
	waiting := []time.Duration{}
	for now := time.Duration(1); now < 5000; now++ {
		if len(waiting) == 0 || random.IntN(2) == 0 && len(waiting) < 100 {
			waiting = append(waiting, now)
			continue
		}
		i := random.IntN(len(waiting))
		begin := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		var want time.Duration
		for _, a := range all {
			if a.begin < begin {
				want = max(want, a.first)
			}
		}
		require.Equal(t, want, known.before(begin))
		all = append(all, answered{begin, now})
		known.add(begin, now)
		require.Equal(t, now, known.before(begin+1))
	}
	for begin := range time.Duration(10 * maxTurns) {
		known.add(5000+begin, 20000+begin)
		require.LessOrEqual(t, len(known), maxTurns)
	}
	require.EqualValues(t, 20000+10*maxTurns-1, known.before(20000), "the last ones are kept")
	require.LessOrEqual(t, cap(known), 2*maxTurns)
}

func TestSizes_KnowTheLargestOpenPrompt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same requests each time
	var known sizes
	var open []*Request
	for range 10_000 {
		if len(open) == 0 || random.IntN(2) == 0 && len(open) < 20 {
			r := &Request{size: random.Int64N(5)}
			open = append(open, r)
			known.add(r.size)
		} else {
			i := random.IntN(len(open))
			size := open[i].size
			open = slices.Delete(open, i, i+1)
			known.remove(size, open)
		}
		var want int64
		for _, r := range open {
			want = max(want, r.size)
		}
		require.Equal(t, want, known.largest)
	}
}
