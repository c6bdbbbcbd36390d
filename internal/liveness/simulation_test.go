// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

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
	days  = flag.Int("days", 0, "simulated engine-days of the tables in docs/liveness.md; 0 simulates a short form only")
	first = flag.Uint64("first", 0, "first seed")
	curve = flag.Bool("curve", false, "simulate other settings than the default ones")
	trail = flag.Bool("trail", false, "print the evidence of each false alarm")
)

const hour = 3600

// outcome is what a watcher said in a simulated day, and about the fault after it.
type outcome struct {
	scheduler scheduler
	alarms    int // in the healthy day
	beyond    int // of these, after a silence of over MaxBound
	fault     fault
	asked     bool    // a witness was open after the fault, and the engine was neither stuck nor slow before
	found     bool    // stuck, or for a tenth of the speed slow or stuck
	after     float64 // seconds
	remaining float64 // prefill of what waited
	bound     float64
	hung      bool // the evidence has the stream that hangs
}

// simulateDay runs healthy seconds, and then a fault within 4 hours. The seed decides everything.
func simulateDay(services simulated.Services, seed uint64, healthy, most float64, watchers ...*watcher) []outcome {
	m := newMachine(services, seed, most)
	m.watched = watchers
	if *trail {
		w := watchers[0]
		w.report = func(now float64, v Verdict) {
			fmt.Printf("seed %d %s %s at %.1f: %+v; remaining %.1f prefill %.2g quad %.2g hit %.2f rep %v reload %.1f wake %+v firstgap %v %+v abandoned %+v\n",
				seed, faultNames[m.fault], schedulerNames[m.scheduler], now, v, m.remaining(), m.prefill, m.quadratic, m.load.hit, m.reports, m.reload, w.wake,
				duration(now)-w.lastFirst, w.phase, w.abandoned)
		}
	}
	m.run(healthy)
	all := make([]outcome, len(watchers))
	for i, w := range watchers {
		all[i].scheduler, all[i].alarms, all[i].beyond = m.scheduler, len(w.alarms), w.beyond
	}
	m.run(healthy + 4*hour*m.Float64())
	for waited := 0; watchers[0].witness == 0 && waited < 6*hour; waited++ {
		m.run(m.now + 1)
	}
	f := fault(1 + seed/uint64(schedulers)%uint64(faults-1))
	at, remaining := m.now, m.remaining()
	for i, w := range watchers {
		v := w.Verdict(duration(m.now))
		all[i].fault, all[i].bound, all[i].remaining = f, v.Bound.Seconds(), remaining
		all[i].asked = v.State != Stuck && !w.stuck && (f != tenth || v.State != Slow)
		w.watch(at)
	}
	m.fail(f)
	if f == saysNothing {
		for i, w := range watchers {
			all[i].remaining = 0
			w.watch(at)
		}
	}
	for m.now < at+900 && slices.ContainsFunc(watchers, func(w *watcher) bool { return len(w.alarms) == 0 }) {
		m.run(m.now + 1)
	}
	for i, w := range watchers {
		o := &all[i]
		found := math.Inf(1)
		if len(w.alarms) > 0 {
			found = w.alarms[0]
		}
		if f == saysNothing {
			o.remaining = m.largest()
		}
		if f == tenth && w.slowAt > 0 {
			found = min(found, w.slowAt)
		}
		o.found, o.after, o.asked = !math.IsInf(found, 1), found-w.open, o.asked && w.open >= 0
		o.hung = w.Verdict(duration(m.now)).Hung > 0
	}
	return all
}

// simulateDays runs seeds on all processors. What watches is made for each.
func simulateDays(services simulated.Services, first uint64, n int, healthy, most float64, watchers func() []*watcher) [][]outcome {
	return simulated.Each(first, n, func(seed uint64) []outcome { return simulateDay(services, seed, healthy, most, watchers()...) })
}

// perDay is a count by days, with the bounds of its 95% interval: 3/n if there was none, else Byar's approximation.
func perDay(count, days int) string {
	n, d := float64(count), float64(days)
	if count == 0 {
		return fmt.Sprintf("0 of %d (at most %.2g)", days, 3/d)
	}
	low := n * math.Pow(1-1/(9*n)-1.96/(3*math.Sqrt(n)), 3)
	high := (n + 1) * math.Pow(1-1/(9*(n+1))+1.96/(3*math.Sqrt(n+1)), 3)
	return fmt.Sprintf("%.2g (%.2g to %.2g)", n/d, low/d, high/d)
}

// rank is a quantile with the 95% interval that order statistics give.
func rank(values []float64, q float64) string {
	if len(values) == 0 {
		return "–"
	}
	slices.Sort(values)
	n := float64(len(values))
	at := func(i float64) float64 { return values[int(max(0, min(n-1, i)))] }
	half := 1.96 * math.Sqrt(n*q*(1-q))
	return fmt.Sprintf("%s (%s to %s)", secondsOf(at(n*q)), secondsOf(at(n*q-half)), secondsOf(at(n*q+half)))
}

func secondsOf(s float64) string {
	if math.IsInf(s, 1) {
		return "over 900"
	}
	return fmt.Sprintf("%.0f", s)
}

// row describes the outcomes of faults.
func row(all []outcome) string {
	var after []float64
	soon := 0
	for _, o := range all {
		after = append(after, o.after)
		if o.found && o.after <= 15+o.remaining {
			soon++
		}
	}
	return fmt.Sprintf("%d | %s | %s | %s | %s", len(all), simulated.Share(soon, len(all), 0), rank(after, 0.5), rank(after, 0.9), rank(after, 0.99))
}

func pick(all [][]outcome, watcher int, keep func(o outcome) bool) (some []outcome) {
	for _, of := range all {
		if keep(of[watcher]) {
			some = append(some, of[watcher])
		}
	}
	return some
}

func falseAlarms(all []outcome) (n int) {
	for _, o := range all {
		n += o.alarms
	}
	return n
}

// TestSimulate prints the tables of docs/liveness.md.
func TestSimulate(t *testing.T) {
	if *days == 0 {
		t.Skip("make simulate-liveness runs this")
	}
	services, began := simulated.Recorded(t), time.Now()
	if *curve {
		printCurve(services)
		return
	}
	all := simulateDays(services, *first, *days, 24*hour, longest, func() []*watcher { return []*watcher{newWatcher(Settings{})} })
	var b strings.Builder
	fmt.Fprintf(&b, "%d engine-days, seeds from %d, in %v\n\n| scheduler | false stuck per engine-day |\n|---|---|\n", *days, *first, time.Since(began).Round(time.Second))
	for s := range schedulers {
		some := pick(all, 0, func(o outcome) bool { return o.scheduler == s })
		fmt.Fprintf(&b, "| %s | %s |\n", schedulerNames[s], perDay(falseAlarms(some), len(some)))
	}
	healthy := pick(all, 0, func(outcome) bool { return true })
	beyond := 0
	for _, o := range healthy {
		beyond += o.beyond
	}
	fmt.Fprintf(&b, "| all | %s |\n| silences of over MaxBound | %s |\n", perDay(falseAlarms(healthy), len(all)), perDay(beyond, len(all)))
	fmt.Fprintf(&b, "\n| fault | scheduler | n | within 15 s | median | p90 | p99 |\n|---|---|---|---|---|---|---|\n")
	for f := allStops; f < faults; f++ {
		for s := scheduler(-1); s < schedulers; s++ {
			name := "all"
			if s >= 0 {
				name = schedulerNames[s]
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", faultNames[f], name, row(pick(all, 0, func(o outcome) bool { return o.asked && o.fault == f && (s < 0 || o.scheduler == s) })))
		}
	}
	hangs := pick(all, 0, func(o outcome) bool { return o.asked && o.fault == streamHangs })
	hung, stuck := 0, 0
	for _, o := range hangs {
		if o.hung {
			hung++
		}
		if o.found {
			stuck++
		}
	}
	fmt.Fprintf(&b, "\none stream hangs: in the evidence %s, stuck %s\n", simulated.Share(hung, len(hangs), 0), simulated.Share(stuck, len(hangs), 0))
	fmt.Println(b.String())
}

// A busy engine gets a prompt of 500,000 tokens when it knows only the recordings' prompts, of 15,000 at most, and for hours after it.
func TestSimulate_PromptOf500kTokensIsNeverStuck(t *testing.T) {
	const comes = 2 * hour
	services := simulated.Recorded(t)
	for seed := range uint64(20) {
		m, w := newMachine(services, *first+seed, longest), newWatcher(Settings{})
		for m.cost(0, 500e3) > longest/1.3 {
			m.prefill, m.quadratic = 0.9*m.prefill, 0.9*m.quadratic
		}
		m.context, m.memory, m.watched = 500e3, max(m.memory, 650e3), []*watcher{w}
		l := m.load
		l.shares, l.burst = []float64{0.6, 0.9}, math.Inf(1)
		l.episode(0)
		huge := l.request(comes, 500e3, 100)
		huge.cached, huge.patience = 0, 0
		l.pending = []arrival{huge}
		m.next = l.take()
		m.run(comes + hour)
		require.Empty(t, w.alarms, "seed %d, %s", seed, schedulerNames[m.scheduler])
		require.Greater(t, w.Learned(), uint64(50), "the engine is busy")
	}
}

// printCurve prints what the settings trade.
func printCurve(services simulated.Services) {
	var b strings.Builder
	settings := []Settings{{}, {MaxBound: 30 * time.Second}, {MaxBound: time.Minute}, {MaxBound: 5 * time.Minute}, {Factor: 1}, {Factor: 2}, {Factor: 5}, {Base: 2 * time.Second}, {Base: 10 * time.Second}}
	all := simulateDays(services, *first, *days, 24*hour, longest, func() (watchers []*watcher) {
		for _, s := range settings {
			watchers = append(watchers, newWatcher(s))
		}
		return watchers
	})
	fmt.Fprintf(&b, "\n| settings | false stuck per engine-day | n | total faults within 15 s | median | p90 | p99 |\n|---|---|---|---|---|---|---|\n")
	for i, s := range settings {
		s = s.withDefaults()
		fmt.Fprintf(&b, "| base %v, factor %v, max_bound %v | %s | %s |\n", s.Base, s.Factor, s.MaxBound,
			perDay(falseAlarms(pick(all, i, func(outcome) bool { return true })), len(all)),
			row(pick(all, i, func(o outcome) bool { return o.asked && (o.fault == allStops || o.fault == saysNothing) })))
	}
	fmt.Println(b.String())
}
