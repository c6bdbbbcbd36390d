// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

var (
	seeds   = flag.Int("seeds", 0, "simulated worlds of the tables; 0 simulates a short form only")
	first   = flag.Uint64("first", 0, "first seed")
	changes = flag.Int("changes", 0, "simulated worlds that change")
	closed  = flag.Int("closed", 0, "simulated worlds of the closed loop")
	even    = flag.Bool("even", false, "take bursts of minutes out of the recorded arrivals, so that a constant load is constant")
	calm    = flag.Bool("calm", true, "simulate loads that never come near the limit, too")
	trail   = flag.Bool("trail", false, "print each world whose limit is too high")
)

// origin is when simulations begin.
var origin = time.Unix(2e9, 0)

const (
	slot = slotLength * time.Second
	week = 7 * 24 * time.Hour
)

// outcome is what a limit said of a world.
type outcome struct {
	world *world
	shape string
	limit *Limit
	end   Answer  // after the last slot that had a limit, or of the last slot
	first Answer  // the first one with a limit
	after float64 // hours until it
	worst float64 // largest quotient of a limit and the true one, asked every 10 minutes
}

// over returns the largest quotient of a limit and the true one.
func (w *world) over(a *Answer) float64 {
	return max(a.Limit[OutputTokens]/w.output, a.Limit[PromptTokens]/w.prompt)
}

// learn lets a new limit learn from slots.
func (w *world) learn(slots []offer) (o outcome) {
	o.world, o.limit = w, New(w.slo.Objective, week)
	r := o.limit.replica()
	for i, s := range slots {
		at := origin.Add(time.Duration(i) * slot)
		r.add(at, s)
		if i%40 != 39 {
			continue
		}
		a := o.limit.Answer(at.Add(slot))
		o.end = a
		if a.Reason != "" {
			continue
		}
		if o.after == 0 {
			o.first, o.after = a, float64(i+1)*slotLength/3600
		}
		o.worst = max(o.worst, w.over(&a))
	}
	return o
}

// learnSeed simulates a replica for hours.
func learnSeed(s simulated.Services, seed uint64, hours, peak float64) outcome {
	w := newWorld(s, seed)
	name, shape := newShape(w.rand(4), peak)
	o := w.learn(w.slots(hours, shape))
	o.shape = name
	return o
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return values[int(q*float64(len(values)-1)+0.5)]
}

func count(values []float64, keep func(float64) bool) (n int) {
	for _, v := range values {
		if keep(v) {
			n++
		}
	}
	return n
}

func atMost1(v float64) bool { return v <= 1 }

// row describes limits of some worlds.
func row(name string, all []outcome) string {
	var over, output, prompt, first, worst, after []float64
	for i := range all {
		o := &all[i]
		if o.after > 0 {
			first, worst, after = append(first, o.world.over(&o.first)), append(worst, o.worst), append(after, o.after)
		}
		if o.end.Reason == "" {
			over = append(over, o.world.over(&o.end))
			output, prompt = append(output, o.end.Limit[OutputTokens]/o.world.output), append(prompt, o.end.Limit[PromptTokens]/o.world.prompt)
		}
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %.2f, %.2f | %.2f to %.2f | %s | %.2f | %s | %.1f | %.1f |\n", name, len(all), len(over),
		simulated.Share(count(over, atMost1), len(over), 1), quantile(output, 0.5), quantile(prompt, 0.5), quantile(over, 0.1), quantile(over, 0.9),
		simulated.Share(count(first, atMost1), len(first), 1), quantile(first, 0.5), simulated.Share(count(worst, atMost1), len(worst), 1), quantile(after, 0.5), quantile(after, 0.9))
}

const rowHead = "| worlds | n | with a limit after 48 h | true limit at or above it | median limit/true: output, prompt | p10 to p90 | true limit at or above the first one | median first/true | never too high in 48 h | hours until the first: median | p90 |\n|---|---|---|---|---|---|---|---|---|---|---|\n"

// TestSimulate prints the tables.
func TestSimulate(t *testing.T) {
	if *seeds+*changes+*closed == 0 {
		t.Skip("make simulate-capacity runs this")
	}
	services, began := simulated.Recorded(t), time.Now()
	var b strings.Builder
	if *seeds > 0 {
		printLimits(&b, services)
		if *calm {
			printCalm(&b, services)
		}
	}
	if *changes > 0 {
		printChanges(&b, services)
	}
	if *closed > 0 {
		printClosed(&b, services)
	}
	fmt.Fprintf(&b, "\nseeds from %d, in %v\n", *first, time.Since(began).Round(time.Second))
	fmt.Println(b.String())
}

func printLimits(b *strings.Builder, s simulated.Services) {
	all := simulated.Each(*first, *seeds, func(seed uint64) outcome { return learnSeed(s, seed, 48, 0) })
	b.WriteString(rowHead)
	b.WriteString(row("all", all))
	some := func(keep func(o *outcome) bool) (some []outcome) {
		for i := range all {
			if keep(&all[i]) {
				some = append(some, all[i])
			}
		}
		return some
	}
	for _, shape := range []string{"day", "episodes", "spikes", "wander"} {
		b.WriteString(row(shape, some(func(o *outcome) bool { return o.shape == shape })))
	}
	for _, objective := range []float64{0.9, 0.95, 0.99} {
		b.WriteString(row(fmt.Sprintf("objective %v", objective), some(func(o *outcome) bool { return o.world.slo.Objective == objective })))
	}
	sharp := func(o *outcome) bool { return o.world.rate > o.world.most/2 }
	b.WriteString(row("knee at over half of the engine's throughput", some(sharp)))
	b.WriteString(row("knee below that", some(func(o *outcome) bool { return !sharp(o) })))
	for i := range all {
		if o := &all[i]; *trail && o.end.Reason == "" && o.world.over(&o.end) > 1 {
			fmt.Fprintf(b, "seed %d %s limit %.3v of output %.3v prompt %.3v requests %.3v of %.3v code %v %+v %+v\n", o.world.seed, o.shape, o.end.Limit, o.world.output, o.world.prompt, o.world.rate, o.world.most, o.world.mix.code, o.world.slo, o.world.engine)
		}
	}
}

// printCalm is about loads that never come near the limit.
func printCalm(b *strings.Builder, s simulated.Services) {
	fmt.Fprintf(b, "\n| peak load/true limit | n | with a limit after 48 h | its median limit/true |\n|---|---|---|---|\n")
	for _, peak := range []float64{0.3, 0.5, 0.7} {
		var over []float64
		for _, o := range simulated.Each(*first, *seeds, func(seed uint64) outcome { return learnSeed(s, seed, 48, peak) }) {
			if o.end.Reason == "" {
				over = append(over, o.world.over(&o.end))
			}
		}
		fmt.Fprintf(b, "| %v | %d | %s | %.2f |\n", peak, *seeds, simulated.Share(len(over), *seeds, 1), quantile(over, 0.5))
	}
}

// changed is what a limit says of a world that is not the one it learned from.
type changed struct {
	known       bool
	utilization float64 // at the true limit of other requests
	slower      float64 // missed slots until the limit is at most 1.1 times that of a slower engine; +Inf if not in a day
}

// change learns, and then changes requests, or the engine.
func change(s simulated.Services, seed uint64) (c changed) {
	o := learnSeed(s, seed, 48, 0)
	if o.end.Reason != "" {
		return c
	}
	c.known = true
	other, r := *o.world, o.world.rand(5)
	for {
		f, g := math.Exp2(2*r.Float64()-1), math.Exp2(2*r.Float64()-1)
		if !alike(f, g) {
			continue
		}
		other.mix.promptScale, other.mix.outputScale = o.world.mix.promptScale*f, o.world.mix.outputScale*g
		break
	}
	c.utilization = math.NaN()
	if other.find(other.most) {
		c.utilization = o.end.Utilization(Load{other.rate, other.output, other.prompt})
	}
	slow := *o.world
	for _, t := range []*float64{&slow.engine.Prefill, &slow.engine.Quadratic, &slow.engine.Step, &slow.engine.PerStream, &slow.engine.PerContext} {
		*t *= 1.4
	}
	c.slower = math.NaN()
	if !slow.find(slow.most) || slow.over(&o.end) <= 1.1 {
		return c // the limit holds for the slower engine, too
	}
	c.slower = math.Inf(1)
	_, shape := newShape(slow.rand(4), 0)
	load := slow
	load.rate = o.world.rate // the load stays
	rep := o.limit.replica()
	missed := 0.0
	for i, sl := range load.slots(24, shape) {
		at := origin.Add(48*time.Hour + time.Duration(i)*slot)
		rep.add(at, sl)
		if float64(sl.Bad) > float64(sl.Good+sl.Bad)*(1-slow.slo.Objective) {
			missed++
		}
		if a := o.limit.Answer(at); i%4 == 3 && (a.Reason != "" || slow.over(&a) <= 1.1) {
			c.slower = missed
			break
		}
	}
	return c
}

func printChanges(b *strings.Builder, s simulated.Services) {
	var utilization, slower []float64
	for _, c := range simulated.Each(*first, *changes, func(seed uint64) changed { return change(s, seed) }) {
		if c.known && !math.IsNaN(c.utilization) {
			utilization = append(utilization, c.utilization)
		}
		if c.known && !math.IsNaN(c.slower) {
			slower = append(slower, c.slower)
		}
	}
	over := count(utilization, func(v float64) bool { return v >= 1 })
	fmt.Fprintf(b, "\nrequests of other lengths, up to twice or half: utilization is 1 or more at the true limit in %s of %d, its median is %.2f\n",
		simulated.Share(over, len(utilization), 1), len(utilization), quantile(utilization, 0.5))
	fmt.Fprintf(b, "engine 1.4 times slower: %d limits are over 1.1 times too high then, until slots missed the objective: median %.0f, p75 %.0f, p90 %.0f\n", len(slower), quantile(slower, 0.5), quantile(slower, 0.75), quantile(slower, 0.9))
}

func TestSimulate_TrueLimitIsAtOrAboveTheLimit(t *testing.T) {
	services := simulated.Recorded(t)
	var over []float64
	for _, o := range simulated.Each(100, 12, func(seed uint64) outcome { return learnSeed(services, seed, 48, 0) }) {
		if o.end.Reason == "" {
			over = append(over, o.world.over(&o.end))
		}
	}
	require.GreaterOrEqual(t, len(over), 9, "most loads reach the limit")
	require.GreaterOrEqual(t, count(over, atMost1), len(over)-1, "limit/true: %.2f", over)
	require.Greater(t, quantile(over, 0.5), 0.6, "limit/true: %.2f", over)
}

func TestSimulate_CalmLoadHasNoLimit(t *testing.T) {
	services := simulated.Recorded(t)
	known := 0
	for _, o := range simulated.Each(100, 10, func(seed uint64) outcome { return learnSeed(services, seed, 24, 0.3) }) {
		if o.end.Reason == "" {
			known++
		}
	}
	require.LessOrEqual(t, known, 1)
}
