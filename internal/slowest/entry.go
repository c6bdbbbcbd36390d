// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest

import (
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Entry is a finished request with all that is known of it. It is immutable. Numbers that
// are missing are NaN.
type Entry struct {
	Arrival         time.Time
	TraceID         [16]byte
	SpanID          [8]byte
	Dimensions      []string // empty where the request has none
	Vantage         string
	Outcome         series.Outcome
	InputTokens     float64
	CachedTokens    float64
	OutputTokens    float64
	Stalls          float64
	StallSeconds    float64
	LargestGap      float64 // seconds
	NoToken         bool    // it is known that no token came
	Breached        []string
	Timeline        []byte // encoded by package timeline, nil without one
	TimelineDropped bool   // at the limit of memory
	Facts

	values [numbers.Distributions]float64
	boards int // that the request is on
}

// Facts are what a span says about a request besides its numbers. Unknown ones are empty.
type Facts struct {
	ErrorType, Status, Replica, Source string
	// Estimated has the attributes that are estimates, without the prefix.
	Estimated []string
}

// ID identifies the request. It stays the same across restarts.
func (r *Entry) ID() string {
	id := hex.EncodeToString(r.TraceID[:]) + "-" + hex.EncodeToString(r.SpanID[:])
	if r.Vantage == "" {
		return id
	}
	return id + "-" + r.Vantage
}

// is reports whether r is this request. One without IDs equals no other.
func (r *Entry) is(other *series.Contribution) bool {
	return r.SpanID == other.SpanID && r.TraceID == other.TraceID && r.SpanID != [8]byte{} && r.Vantage == other.Vantage
}

// Value returns a quantity that has one value per request.
func (r *Entry) Value(q numbers.ID) float64 { return r.values[q] }

// firstToken is the index of the time to first token among the indicators.
var firstToken = slices.Index(numbers.Indicators[:], numbers.TimeToFirstToken)

// NewEntry copies a request, whose memory the caller reuses. It has no timeline.
func NewEntry(r *series.Contribution, facts Facts) *Entry {
	c := &Entry{
		Facts:   facts,
		Arrival: r.Arrival, TraceID: r.TraceID, SpanID: r.SpanID,
		Vantage: strings.Clone(r.Vantage), Outcome: r.Outcome,
		InputTokens: count(r, numbers.InputTokens), CachedTokens: count(r, numbers.CachedInputTokens),
		OutputTokens: count(r, numbers.OutputTokens),
		Stalls:       count(r, numbers.StallCount), StallSeconds: count(r, numbers.StallDuration),
		LargestGap: math.NaN(), NoToken: r.Latency.Absences[firstToken] == latency.NoToken,
	}
	for _, v := range r.Dimensions {
		c.Dimensions = append(c.Dimensions, strings.Clone(v))
	}
	for _, q := range series.HistoryQuantities {
		c.values[q] = math.NaN()
		if q == numbers.InterTokenLatency {
			if largest := r.Largest(q); largest > 0 {
				c.LargestGap = largest
			}
		} else if v, ok := r.Value(q); ok {
			c.values[q] = v
		}
	}
	for q := numbers.TimePerTokenFrom0; q <= numbers.TimePerTokenFrom1000; q++ {
		c.values[q] = count(r, q)
	}
	for name, verdict := range r.Verdicts.All {
		if verdict == slo.Bad {
			c.Breached = append(c.Breached, strings.Clone(name))
		}
	}
	slices.Sort(c.Breached)
	return c
}

func count(r *series.Contribution, id numbers.ID) float64 {
	if n, ok := r.Value(id); ok {
		return n
	}
	return math.NaN()
}
