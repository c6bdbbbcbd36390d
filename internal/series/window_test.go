// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

func nearestRank(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}

// The quantiles at many times are compared with those of a list of values, with and
// without reads in between.
func TestCollect_QuantilesFollowTheirWindow(t *testing.T) {
	type value struct {
		at time.Duration
		v  float64
	}
	for _, readEvery := range []time.Duration{time.Second, 7 * time.Second, 100 * time.Second} {
		t.Run(fmt.Sprintf("read every %v", readEvery), func(t *testing.T) {
			e := newTestEngine(nil)
			random := rand.New(rand.NewPCG(1, 2))
			var all []value
			compared := 0
			for now := time.Duration(0); now < 10*time.Minute; now += 250 * time.Millisecond {
				level := 0.05 + 0.02*math.Floor(now.Minutes()) // each minute is slower than the last
				v := level * math.Exp(0.3*random.NormFloat64())
				e.Record(answered("m", e.at(now), v))
				all = append(all, value{now, v})
				if now%readEvery != 0 {
					continue
				}
				quantiles := e.collect(e.at(now), numbers.TimeToFirstToken)["m"].quantiles
				require.Len(t, quantiles, 3*len(windowedQuantiles))
				for _, q := range quantiles {
					slot := []time.Duration{5 * time.Second, 25 * time.Second, 5 * time.Minute}[q.Window]
					from := now/slot*slot - 11*slot // the open slot and eleven closed ones
					var values []float64
					for _, v := range all {
						if v.at >= from {
							values = append(values, v.v)
						}
					}
					exact := nearestRank(values, windowedQuantiles[q.Quantile])
					require.InEpsilon(t, exact, q.Value, 0.0055, "at %v, window %d, quantile %d", now, q.Window, q.Quantile)
					compared++
				}
			}
			require.Greater(t, compared, 50)
		})
	}
}

func TestCollect_EmptyWindowHasNoQuantile(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(answered("m", e.at(0), 0.2))
	windows := func(now time.Duration) []int {
		var windows []int
		for _, q := range e.collect(e.at(now), numbers.TimeToFirstToken)["m"].quantiles {
			windows = append(windows, q.Window)
		}
		return slices.Compact(windows)
	}
	require.Equal(t, []int{0, 1, 2}, windows(0))
	require.Equal(t, []int{0, 1, 2}, windows(59*time.Second))
	require.Equal(t, []int{1, 2}, windows(60*time.Second))
	require.Equal(t, []int{2}, windows(300*time.Second))
	require.Empty(t, windows(time.Hour))
	require.EqualValues(t, 1, e.collect(e.at(time.Hour), numbers.TimeToFirstToken)["m"].count, "the total stays")
	e.Record(answered("m", e.at(3*time.Hour), 0.3))
	require.Equal(t, []int{0, 1, 2}, windows(3*time.Hour))
}

// The clock was set back, or two batches were recorded in the wrong order.
func TestRecord_ClockStepBackLosesNothing(t *testing.T) {
	e := newTestEngine(nil)
	e.Record(answered("m", e.at(10*time.Minute), 0.2))
	e.Record(answered("m", e.at(5*time.Minute), 0.2))
	require.Len(t, e.collect(e.at(time.Minute), numbers.TimeToFirstToken)["m"].quantiles, 3*len(windowedQuantiles))
	require.EqualValues(t, 2, e.collect(e.at(time.Minute), numbers.TimeToFirstToken)["m"].count)
}
