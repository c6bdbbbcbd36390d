// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

// setting is a rule with its target.
type setting struct {
	rule   rule
	target float64
}

var settings = []setting{
	{byCapacity, 0.6},
	{byCapacity, 0.8},
	{byCapacity, 1},
	{byCapacity, 1.25},
	{byCapacity, 1.5},
	{byWaiting, 0.1},
	{byWaiting, 0.3},
	{byWaiting, 1},
	{byWaiting, 3},
	{byWaiting, 10},
	{byInFlight, 2},
	{byInFlight, 4},
	{byInFlight, 8},
	{byInFlight, 16},
	{byInFlight, 32},
	{byP90, 0.2},
	{byP90, 0.4},
	{byP90, 0.6},
	{byP90, 0.8},
	{byP90, 1},
}

// served is how a setting did in a world: the share of good requests, and replica-hours over those of as many replicas as the true limit needs.
type served struct{ good, hours float64 }

const (
	closedHours = 8
	closedPeak  = 5 // true limits
)

// closeLoop scales a service by each setting, for hours after a replica's limit was learned. The result is nil if it was not.
func closeLoop(s simulated.Services, seed uint64, settings []setting) (all []served) {
	o := learnSeed(s, seed, 48, 0)
	if o.end.Reason != "" {
		return nil
	}
	w := o.world
	// A day in 8 hours.
	fresh := func() func(at float64) float64 {
		_, shape := newShape(w.rand(6), 0)
		return func(at float64) float64 { return shape(at * 24 / closedHours) }
	}
	peak, ideal := 0.0, 0.0
	shape := fresh()
	for at := 0.0; at < closedHours*3600; at++ {
		peak = max(peak, shape(at))
	}
	shape = fresh()
	for at := 0.0; at < closedHours*3600; at++ {
		ideal += math.Ceil(closedPeak*shape(at)/peak) / 3600
	}
	for _, set := range settings {
		limit, shape := *o.limit, fresh()
		c := &cluster{w: w, rule: set.rule, target: set.target, limit: &limit}
		l := newLoad(s, w.rand(7), w.mix, func(at float64) float64 { return w.rate * closedPeak * shape(at) / peak })
		c.run(l.take, closedHours*3600, int(math.Ceil(closedPeak*shape(0)/peak))+1)
		all = append(all, served{c.good / c.all, c.hours / ideal})
	}
	return all
}

func printClosed(b *strings.Builder, s simulated.Services) {
	var all [][]served
	worlds := simulated.Each(*first, *closed, func(seed uint64) []served { return closeLoop(s, seed, settings) })
	for _, of := range worlds {
		if of != nil {
			all = append(all, of)
		}
	}
	fmt.Fprintf(b, "\n%d of %d worlds have a limit\n\n| rule | target | good requests | p10 of worlds | replica-hours over least |\n|---|---|---|---|---|\n", len(all), *closed)
	for i, set := range settings {
		var good, hours []float64
		for _, of := range all {
			good, hours = append(good, of[i].good), append(hours, of[i].hours)
		}
		fmt.Fprintf(b, "| %s | %v | %.2f%% | %.2f%% | %.2f |\n", ruleNames[set.rule], set.target, 100*mean(good), 100*quantile(good, 0.1), mean(hours))
	}
	fmt.Fprintf(b, "\n| replicas_needed, target | other rule, at its best target of the world with at most as many replica-hours (or its cheapest) | good: needed | good: other | replica-hours: needed | other | needed not worse in |\n|---|---|---|---|---|---|---|\n")
	for i, set := range settings {
		if set.rule != byCapacity {
			continue
		}
		for other := byWaiting; other < rules; other++ {
			var good, best, hours, otherHours []float64
			better := 0
			for _, of := range all {
				o := rival(of, of[i].hours, other)
				good, best, hours, otherHours = append(good, of[i].good), append(best, o.good), append(hours, of[i].hours), append(otherHours, o.hours)
				if of[i].good >= o.good {
					better++
				}
			}
			fmt.Fprintf(b, "| %v | %s | %.2f%% | %.2f%% | %.2f | %.2f | %s |\n", set.target, ruleNames[other], 100*mean(good), 100*mean(best), mean(hours), mean(otherHours), simulated.Share(better, len(all), 1))
		}
	}
}

// rival returns the best result of a rule that took at most as many hours, or else the one with the fewest.
func rival(of []served, hours float64, other rule) served {
	best, least := served{}, served{hours: math.Inf(1)}
	for i, set := range settings {
		if set.rule != other {
			continue
		}
		if of[i].hours <= hours && of[i].good >= best.good {
			best = of[i]
		}
		if of[i].hours < least.hours {
			least = of[i]
		}
	}
	if best.hours == 0 {
		return least
	}
	return best
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

func TestSimulate_ServiceScaledByItsLimitBeatsTheQueueRule(t *testing.T) {
	services := simulated.Recorded(t)
	var needed, other []float64
	for _, of := range simulated.Each(100, 3, func(seed uint64) []served { return closeLoop(services, seed, settings[2:10]) }) {
		if of == nil {
			continue
		}
		needed = append(needed, of[0].good)
		best := 0.0
		for _, o := range of[3:] {
			if o.hours <= of[0].hours {
				best = max(best, o.good)
			}
		}
		other = append(other, best)
	}
	require.NotEmpty(t, needed)
	require.GreaterOrEqual(t, mean(needed), mean(other), "shares of good requests, at most as many replica-hours: %.4f and %.4f", needed, other)
}
