// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// simple estimates seconds per byte from the last 500 waits of prompts above 16 kB.
type simple struct {
	rates []float64
	of    func(rates []float64) float64
}

func (e *simple) silent(time.Duration, sample) {}

func (e *simple) served(_ time.Duration, s sample) {
	if s.size > 16_000 {
		e.rates = append(e.rates, s.wait.Seconds()/float64(s.size))
		e.rates = e.rates[max(0, len(e.rates)-500):]
	}
}

func (e *simple) expect(_ time.Duration, size int64) (time.Duration, bool) {
	if len(e.rates) < 20 {
		return 0, false
	}
	return seconds(e.of(e.rates) * float64(size)), true
}

func (e *simple) seen() uint64 { return uint64(len(e.rates)) }

func lastOf(rates []float64) float64 { return rates[len(rates)-1] }

func meanOf(rates []float64) (sum float64) {
	for _, r := range rates {
		sum += r
	}
	return sum / float64(len(rates))
}

func highOf(rates []float64) float64 {
	sorted := slices.Sorted(slices.Values(rates))
	return sorted[len(sorted)*95/100]
}

// Each other estimator has false alarms, or finds fewer faults in time, in the same simulated days.
func TestEstimator_OthersAreWorse(t *testing.T) {
	services := trace(t)
	names := []string{"this one", "95th percentile", "last value", "mean"}
	watchers := func() (all []*watcher) {
		for _, of := range []func([]float64) float64{nil, highOf, lastOf, meanOf} {
			w := newWatcher(Settings{})
			if of != nil {
				w.estimator = &simple{of: of}
			}
			all = append(all, w)
		}
		return all
	}
	var days [][]outcome
	for _, from := range []uint64{0, 20} { // all stops; accepts and says nothing
		days = append(days, simulateDays(services, from, 5, 6*hour, longest, watchers)...)
	}
	alarms, soon := make([]int, len(names)), make([]int, len(names))
	for i, name := range names {
		all := pick(days, i, func(outcome) bool { return true })
		alarms[i] = falseAlarms(all)
		for _, o := range all {
			if o.asked && o.found && o.after <= 15+o.remaining {
				soon[i]++
			}
		}
		t.Logf("%s: %d false alarms in %d days, %d faults found in time", name, alarms[i], len(all), soon[i])
	}
	require.Zero(t, alarms[0])
	for i := range names[1:] {
		require.True(t, alarms[i+1] > 0 || soon[i+1] <= soon[0]-2, names[i+1])
	}
}
