// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Absence is the reason why a request has no value of an indicator. Of several, the first in this
// order counts.
type Absence uint8

// The reasons, as definitions.md has them.
const (
	Present Absence = iota
	Implausible
	NoToken
	AmbiguousUnit
	NotStreamed
	NotRead
	NotReported
	DroppedEvents
	Buffered
	OneToken
	NumAbsences // number of reasons, Present included
)

// String returns one of names.UnmeasuredReasons, or "" for Present.
func (a Absence) String() string {
	if a == Present {
		return ""
	}
	return names.UnmeasuredReasons[a-1]
}

// explainAbsences sets the reason for each missing indicator.
func (d *derivation) explainAbsences(first Milestone) {
	for i, q := range numbers.Indicators {
		if q == numbers.TokensPerChunk {
			d.latency.Absences[i] = d.absenceOfChunkTokens()
		} else if !d.latency.Measures[q].Known {
			d.latency.Absences[i] = d.absence(q, first)
			d.latency.StreamStopped = d.latency.StreamStopped || d.request.StreamAsked && d.latency.Absences[i] == NotStreamed
		}
	}
}

func (d *derivation) absence(q numbers.ID, first Milestone) Absence {
	decode := d.latency.Measures[numbers.DecodeDuration].Known
	switch {
	case d.implausible(q, first):
		return Implausible
	case !first.Known && d.noToken():
		return NoToken
	case !first.Known && d.request.AmbiguousUnit:
		return AmbiguousUnit
	case !first.Known && d.request.NotStreamed:
		return NotStreamed
	case !first.Known && d.request.NotRead:
		return NotRead
	case !first.Known && d.request.EventsDropped: // the sender may have reported a first token
		return DroppedEvents
	case q == numbers.TimePerOutputToken && d.latency.Buffered && d.request.StreamAsked && d.inOnePiece():
		return NotStreamed
	case q == numbers.TimePerOutputToken && d.latency.Buffered:
		return Buffered
	case q == numbers.TimePerOutputToken && decode && d.atMostOneToken():
		return OneToken
	default:
		return NotReported
	}
}

// implausible reports whether the indicator's value, or one that it is derived from, was rejected.
func (d *derivation) implausible(q numbers.ID, first Milestone) bool {
	switch {
	case d.generatedNothing():
		return false
	case !first.Known && d.request.FirstTokenRejected:
		return true
	}
	if q == numbers.TimeToFirstToken {
		return first.Known && !d.request.StartUnknown
	}
	return (first.Known || d.request.Decode.Known) && !d.latency.Measures[numbers.DecodeDuration].Known
}

// noToken reports whether no token is known of. A request that did not succeed and reports no number
// of tokens most likely had none.
func (d *derivation) noToken() bool {
	if d.arrivals.chunks > 0 || d.dropped() > 0 {
		return false
	}
	if tokens := d.request.OutputTokens; tokens.Known {
		return tokens.Value == 0 || !d.request.TokensNotObserved
	}
	return !d.request.TokensNotObserved || d.latency.Outcome != names.OutcomeSuccess
}

// inOnePiece reports whether only one arrival is known of a stream that was held back.
func (d *derivation) inOnePiece() bool {
	return d.arrivals.chunks <= 1 && d.dropped() == 0 && !d.request.LastToken.Known
}

func (d *derivation) atMostOneToken() bool {
	tokens, known, _ := d.outputTokens()
	return known && tokens <= max(1, d.request.Choices) || d.atMostOneChunk()
}
