// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// The tests of a pair. Each has its own idea of a bad request.
const (
	// judged: bad for the SLO or, with a percentile, over the threshold.
	judged = iota
	// shifted is judged for a pair with a percentile, whose candidate's values are only bad over
	// (1 + tolerance) times the threshold, rounded down.
	shifted
	// beyond is shifted with the product rounded up.
	beyond
	// strict is shifted or, for an SLO, judged, with unmeasured requests and client mistakes as bad.
	strict
	// coverage: unmeasured.
	coverage
	// outcomes: unsuccessful.
	outcomes
	testCount
)

// trials are the requests that a test considers, and how many of them are bad.
type trials struct{ n, bad uint64 }

func (t *trials) add(other trials) {
	t.n += other.n
	t.bad += other.bad
}

// observation is how each test sees the same requests.
type observation [testCount]trials

func (o *observation) merge(from *observation) {
	for i := range o {
		o[i].add(from[i])
	}
}

// limits are the thresholds of a window, as buckets of a sketch: values above them are bad.
type limits struct {
	percentile bool
	known      bool
	// threshold holds for judged, and for the baseline in shifted and beyond. For the candidate, these have limits
	// of their own.
	threshold, shifted, beyond int
}

// limits returns the thresholds of a window. The windows before it must be closed.
func (p *Pair) limits(w *window) limits {
	l := limits{percentile: p.settings.Percentile > 0}
	if l.percentile {
		l.threshold, l.known = p.recent.threshold(w.start, p.settings.Percentile)
		buckets, few := math.Log2(1+p.settings.Tolerance)*(1<<sketch.Scale), 1e-9
		further := func(buckets float64) int { return l.threshold + int(min(max(buckets, 1), math.MaxInt16)) }
		l.shifted, l.beyond = further(math.Floor(buckets+few)), further(math.Ceil(buckets-few))
	}
	return l
}

// observe returns how each test sees a group of an arm.
func (l *limits) observe(arm Arm, g *group) (o observation) {
	c := &g.counts
	o[judged] = trials{c.Eligible, c.Bad}
	bad := c.Bad
	if l.percentile {
		o[judged] = trials{}
		if l.known {
			o[judged] = g.values.over(l.threshold)
			o[shifted], o[beyond] = o[judged], o[judged]
			if arm == Candidate {
				o[shifted], o[beyond] = g.values.over(l.shifted), g.values.over(l.beyond)
			}
		}
		bad = o[shifted].bad
	}
	if !l.percentile || l.known {
		o[strict] = trials{c.Requests, bad + c.Unmeasured + c.Mistakes}
	}
	o[coverage] = trials{c.Requests, c.Unmeasured}
	o[outcomes] = trials{c.Requests, c.Unsuccessful}
	for i := range o {
		o[i].bad = min(o[i].bad, o[i].n)
	}
	return o
}

// thresholdSpan is how many seconds of values before a window set its threshold.
const thresholdSpan = 600

// recentValues are the baseline's values in closed windows of the last thresholdSpan seconds.
type recentValues []closedValues

type closedValues struct {
	start, length int64
	values        distribution
}

// maxRecent is the number of windows of both lengths in thresholdSpan.
const maxRecent = thresholdSpan/shortWindow + thresholdSpan/longWindow

// add adds a window. It removes those too old for the next window, and later ones of the same
// length, which a clock leaves behind that steps back.
func (r *recentValues) add(w *window) {
	*r = slices.DeleteFunc(*r, func(c closedValues) bool {
		return c.start < w.end()-thresholdSpan || c.start >= w.start && c.length == w.length
	})
	var all group
	for i := range w.arms[Baseline] {
		all.merge(&w.arms[Baseline][i].value)
	}
	if len(all.values) > 0 && len(*r) < maxRecent {
		*r = append(*r, closedValues{w.start, w.length, slices.Clip(all.values)})
	}
}

// threshold returns the bucket of a percentile of the values before a time. Its upper bound is the
// threshold. known is false if there are no values, or the percentile is 0.
func (r recentValues) threshold(start int64, percentile float64) (index int, known bool) {
	var all sketch.Sketch
	for _, c := range r {
		if c.start >= start-thresholdSpan && c.start+c.length <= start {
			c.values.addTo(&all)
		}
	}
	v := all.Quantile(percentile)
	if !(v > sketch.ZeroThreshold) {
		return 0, false
	}
	return sketch.Index(v), true
}
