// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// MaxStalls limits the stalls of Moments.
const MaxStalls = 16

// Moments are when the tokens of a request arrived, and when none did. Times are relative to the
// request's start, and in the request.
type Moments struct {
	FirstToken, LastToken optional.Value[time.Duration]
	// Stalls are the longest ones, at most MaxStalls, by time. They are valid until the next request is
	// analyzed.
	Stalls []Stall
}

// Stall is a gap longer than the stall threshold.
type Stall struct {
	// At is the time of the last token before the stall.
	At, Duration time.Duration
	// Token is the number of tokens that came before the stall: the index, from 0, of the token that it
	// delayed.
	Token int64
}

// longest holds the longest stalls.
type longest struct {
	wanted bool
	stalls []Stall
}

func (l *longest) reset(wanted bool) { l.wanted, l.stalls = wanted, l.stalls[:0] }

// add keeps the stall unless MaxStalls are as long.
func (l *longest) add(stall Stall) {
	switch {
	case !l.wanted:
	case len(l.stalls) < MaxStalls:
		l.stalls = append(l.stalls, stall)
	default:
		shortest := 0
		for i := range l.stalls {
			if l.stalls[i].Duration < l.stalls[shortest].Duration {
				shortest = i
			}
		}
		if l.stalls[shortest].Duration < stall.Duration {
			l.stalls = append(slices.Delete(l.stalls, shortest, shortest+1), stall)
		}
	}
}

// moments sets what happened when. The wait of a client that gave up is a stall, too.
func (d *derivation) moments(first Milestone) {
	moments := &d.latency.Moments
	if d.latency.Measures[numbers.TimeToFirstToken].Known {
		moments.FirstToken = optional.Of(first.Offset)
	}
	if last, known := d.lastToken(); known && last <= d.limit {
		moments.LastToken = optional.Of(last)
		if d.latency.StalledAtEnd {
			from, _ := d.waitedFrom()
			d.arrivals.longest.add(Stall{from, d.request.Duration - from, d.arrivals.tokens})
		}
	}
	moments.Stalls = slices.DeleteFunc(d.arrivals.longest.stalls, func(s Stall) bool { return s.At < 0 || d.limit < s.At })
}
