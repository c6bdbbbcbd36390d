// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Arm is one side of a pair.
type Arm uint8

// The arms of a pair.
const (
	Baseline Arm = iota
	Candidate
	arms
)

// Counts are numbers of requests of one arm and replica that started in one window.
type Counts struct {
	Requests uint64
	// Eligible requests were judged good or bad, Bad ones of them bad.
	Eligible, Bad uint64
	// Unmeasured requests were neither judged, nor client mistakes, nor excused.
	Unmeasured uint64
	// Unsuccessful requests have the outcome error, incomplete or cancelled. They include Mistakes,
	// those that the client caused.
	Unsuccessful, Mistakes uint64
}

// Settings say what a pair compares.
type Settings struct {
	// Percentile of the values to compare, between 0 and 1. 0 compares the verdicts of an SLO.
	Percentile float64
	// Tolerance of a pair with a Percentile is how much slower a candidate may be: 0.1 is a percentile
	// 1.1 times as large. It is at least a bucket of a sketch, 1.1%.
	Tolerance float64
}

const (
	// closingDelay is how many seconds a window waits for its requests after its end.
	closingDelay = 120
	// The lengths of windows in seconds.
	shortWindow = 10
	longWindow  = 60
	// maxOpen is the number of windows of both lengths that are open at the same time.
	maxOpen = closingDelay/shortWindow + 1 + closingDelay/longWindow + 1
)

// Pair collects what two arms serve at the same time. It is not safe for concurrent use.
//
// All times are in seconds since 1970, since excepted.
type Pair struct {
	settings Settings
	since    time.Time
	// clock is the latest time of a call. It steps back only if the callers' clock did so by more
	// than closingDelay.
	clock   int64
	open    []*window // in the order of their ends
	arms    [arms]armTotals
	tests   [testCount]test
	blocks  [len(blockLengths)]block
	recent  recentValues
	windows uint64 // closed ones, in which both arms had requests
	// badBlocks counts the longest blocks in which the baseline had bad requests.
	badBlocks uint64
}

// armTotals sums up the closed windows of an arm.
type armTotals struct {
	requests uint64
	judged   trials
	// replicas is the largest number of replicas in one of the longest blocks.
	replicas uint64
	values   sketch.Sketch // of a pair with a percentile
}

// NewPair starts a pair. Requests that start before since are ignored.
func NewPair(s Settings, since time.Time) *Pair {
	return &Pair{settings: s, since: since, clock: since.Unix()}
}

// Add counts requests that started at the same time. length is that of their window: 10 s, or 60 s for any
// longer one. An empty replica is an unknown one. A start in the future counts as now. Requests whose window is
// closed count as unmeasured in the oldest open one.
//
// For a pair with a percentile, values has one value for each request that was measured, larger ones being worse;
// they take the place of Eligible and Bad. Other pairs ignore them.
//
// Add returns the number of requests whose replica was merged with others, because a limit was reached.
func (p *Pair) Add(start, now time.Time, length time.Duration, arm Arm, replica string, c Counts, values *sketch.Sketch) (folded uint64) {
	p.Advance(now)
	if start.Before(p.since) {
		return 0
	}
	seconds := int64(shortWindow)
	if length > shortWindow*time.Second {
		seconds = longWindow
	}
	w, late := p.windowAt(min(start.Unix(), now.Unix()), seconds)
	if late {
		c = Counts{Requests: c.Requests, Unmeasured: c.Requests, Unsuccessful: c.Unsuccessful}
	}
	if late || p.settings.Percentile == 0 {
		values = nil
	}
	return w.add(arm, hash(replica), c, values)
}

// windowAt returns the open window of a time. late reports that it is closed, and the window
// returned the oldest open one.
func (p *Pair) windowAt(seconds, length int64) (w *window, late bool) {
	start := floor(seconds, length)
	oldest := floor(p.clock-closingDelay-length, length) + length
	if start < oldest {
		start, late = oldest, true
	}
	for _, w := range p.open {
		if w.start == start && w.length == length {
			return w, late
		}
	}
	w = &window{start: start, length: length}
	i, _ := slices.BinarySearchFunc(p.open, w, (*window).compare)
	p.open = slices.Insert(p.open, i, w)
	return w, late
}

// Advance closes the windows that ended two minutes ago. If the clock stepped back by more than
// that, it closes all windows, and new ones follow from there.
func (p *Pair) Advance(now time.Time) {
	if now.Before(p.since) {
		p.since = now
	}
	seconds := now.Unix()
	back := seconds < p.clock-closingDelay
	for len(p.open) > 0 && (back || p.open[0].end()+closingDelay <= seconds) {
		p.close(p.open[0])
		p.open = slices.Delete(p.open, 0, 1)
	}
	if back || seconds > p.clock {
		p.clock = seconds
	}
}

// close adds a window to all tests.
func (p *Pair) close(w *window) {
	p.turnBlocks(w.start)
	limits := p.limits(w)
	var sums [arms]observation
	for arm := range w.arms {
		total := &p.arms[arm]
		for i := range w.arms[arm] {
			e := &w.arms[arm][i]
			o := limits.observe(Arm(arm), &e.value)
			sums[arm].merge(&o)
			for b := range p.blocks {
				p.blocks[b].add(Arm(arm), e.replica, &o)
			}
			total.requests += e.value.counts.Requests
			e.value.values.addTo(&total.values)
		}
		total.judged.add(sums[arm][judged])
		longest := p.blocks[len(p.blocks)-1].arms[arm]
		total.replicas = max(total.replicas, known(longest))
	}
	if sums[Baseline][coverage].n > 0 && sums[Candidate][coverage].n > 0 {
		p.windows++
	}
	for i := range p.tests {
		t := &p.tests[i]
		t.likelihood.add(sums[Baseline][i], sums[Candidate][i], t.dispersion())
	}
	if p.settings.Percentile > 0 {
		p.recent.add(w)
	}
}

// floor returns the largest multiple of length that is at most n.
func floor(n, length int64) int64 {
	rest := n % length
	if rest < 0 {
		rest += length
	}
	return n - rest
}

func (c *Counts) add(other Counts) {
	for _, n := range [...]struct {
		to   *uint64
		from uint64
	}{
		{&c.Requests, other.Requests},
		{&c.Eligible, other.Eligible},
		{&c.Bad, other.Bad},
		{&c.Unmeasured, other.Unmeasured},
		{&c.Unsuccessful, other.Unsuccessful},
		{&c.Mistakes, other.Mistakes},
	} {
		*n.to = saturated(*n.to, n.from)
	}
}

// saturated returns the sum of two counts, and at most maxCount, so that sums of it do not overflow.
func saturated(a, b uint64) uint64 { return min(min(a, maxCount)+min(b, maxCount), maxCount) }

const maxCount = math.MaxUint32
