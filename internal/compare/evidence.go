// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Lengths of the windows that requests belong to by their start, or data points by their time.
const (
	spanWindow  = 10 * time.Second
	pointWindow = time.Minute
)

// evidence is what is known of a pair.
type evidence struct {
	Key
	dimension int
	indicator numbers.ID // unless the pair has an SLO

	since   time.Time // what began before does not count. Zero before the candidate's first request
	vantage string    // the only one that counts, empty before the first request
	pair    *canary.Pair
	changes uint64

	configured bool
	// latest is when each arm last had a request, or when the pair began.
	latest [2]time.Time
}

func newEvidence(k Key, dimensions []string) *evidence {
	return &evidence{Key: k, dimension: slices.Index(dimensions, k.Dimension), indicator: indicators[k.Indicator], vantage: k.Vantage}
}

// begin begins to count.
func (e *evidence) begin(since time.Time) {
	e.since, e.pair = since, canary.NewPair(e.settings(), since)
	e.latest = [2]time.Time{since, since}
	e.changes++
}

// reset forgets what is known.
func (e *evidence) reset() {
	e.since, e.vantage, e.pair = time.Time{}, e.Vantage, nil
}

// idleSince returns when the arm that has no request for longest had its last one.
func (e *evidence) idleSince() time.Time {
	return slices.MinFunc(e.latest[:], time.Time.Compare)
}

// armOf returns the arm of a series. ok is false if it is neither, or if its requests do not count. A pair begins
// with the candidate.
func (e *evidence) armOf(dimensions []string, vantage string) (arm canary.Arm, ok bool) {
	switch dimensions[e.dimension] {
	case e.Candidate:
		arm = canary.Candidate
	case e.Baseline:
		arm = canary.Baseline
	default:
		return 0, false
	}
	return arm, (e.vantage == "" || vantage == e.vantage) && (e.pair != nil || arm == canary.Candidate)
}

// admit reports whether what started at a time is part of the evidence of an arm. The first one that is sets the vantage.
func (e *evidence) admit(arm canary.Arm, start, now time.Time, vantage string) bool {
	if e.pair == nil {
		e.begin(now.Truncate(spanWindow))
	}
	if start.Before(e.since) {
		return false
	}
	e.vantage, e.latest[arm] = vantage, now
	e.changes++
	return true
}

// Request is a request that was recorded.
type Request struct {
	*series.Contribution
	Start time.Time
	// Replica returns the replica that served the request.
	Replica func() string
}

// record counts a request. It returns the number of requests that canary.Pair folded.
func (e *evidence) record(r *Request) (folded uint64) {
	arm, ok := e.armOf(r.Dimensions, r.Vantage)
	if !ok || r.TraceOnly {
		return 0
	}
	counts, values, ok := e.read(r.Contribution)
	if !ok || !e.admit(arm, r.Start, r.Arrival, r.Vantage) {
		return 0
	}
	counts.Requests = 1
	if r.Outcome != series.Success {
		counts.Unsuccessful = 1
	}
	return e.pair.Add(r.Start, r.Arrival, spanWindow, arm, r.Replica(), counts, values)
}

// read returns how a request was judged, or its value. ok is false if the SLO does not apply to it.
func (e *evidence) read(r *series.Contribution) (counts canary.Counts, values *sketch.Sketch, ok bool) {
	mistaken := r.Failure.Known && r.Failure.Value == slo.ClientMistake
	if e.SLO == "" {
		v, known := r.Value(e.indicator)
		switch {
		case known:
			values = new(sketch.Sketch)
			values.Add(v, 1)
		case mistaken:
			counts.Mistakes = 1
		default:
			counts.Unmeasured = 1
		}
		return counts, values, true
	}
	for name, verdict := range r.Verdicts.All {
		if name == e.SLO {
			return judged(verdict, 1, mistaken), nil, true
		}
	}
	return counts, nil, false
}

// judged returns the counts of requests with a verdict.
func judged(verdict slo.Verdict, requests uint64, mistaken bool) (counts canary.Counts) {
	switch {
	case verdict == slo.Bad:
		counts.Eligible, counts.Bad = requests, requests
	case verdict == slo.Good:
		counts.Eligible = requests
	case mistaken:
		counts.Mistakes = requests
	default:
		counts.Unmeasured = requests
	}
	return counts
}

// increase counts the requests of a data point. Client mistakes are among the unmeasured ones, and requests that
// an SLO does not apply to among the unsuccessful ones.
func (e *evidence) increase(i *series.Increment) (folded uint64) {
	arm, ok := e.armOf(i.Dimensions, i.Vantage)
	if !ok {
		return 0
	}
	var counts canary.Counts
	var values *sketch.Sketch
	switch {
	case i.Part == series.PartRequests:
		if e.SLO == "" {
			counts.Requests = i.Requests
		}
		if i.Outcome != series.Success {
			counts.Unsuccessful = i.Requests
		}
	case i.Part == series.PartVerdicts && i.SLO == e.SLO:
		counts = judged(i.Verdict, i.Requests, false)
		counts.Requests = i.Requests
	case i.Part == series.PartValues && e.SLO == "" && i.Quantity == e.indicator:
		values = i.Values
	case i.Part == series.PartCount && e.SLO == "" && isUnmeasured(i.Count, e.indicator):
		counts.Unmeasured = uint64(i.Sum)
	default:
		return 0
	}
	if !e.admit(arm, i.Time, i.Arrival, i.Vantage) {
		return 0
	}
	return e.pair.Add(i.Time, i.Arrival, pointWindow, arm, i.Replica, counts, values)
}

// isUnmeasured reports whether a sum counts the requests without an indicator.
func isUnmeasured(count series.Count, indicator numbers.ID) bool {
	at := slices.Index(numbers.Indicators[:], indicator)
	return at >= 0 && series.Counters[count].Indicator == names.UnmeasuredIndicators[at]
}
