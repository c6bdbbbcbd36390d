// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest

import (
	"math"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// ReasonStalls is the reason of a request that spent most of its time in stalls.
const ReasonStalls = "stalls"

// Reason returns where most of a request's time went: a phase or ReasonStalls, which are part of decode. It is empty if no
// phase is known, or if the request waited for longer at its end.
func (r *Entry) Reason() (reason string) {
	stalled := r.StallSeconds
	if math.IsNaN(stalled) {
		stalled = 0
	}
	most := math.Inf(-1)
	for _, phase := range []struct {
		name string
		time float64
	}{
		{names.PhaseQueue, r.Value(numbers.QueueDuration)},
		{names.PhasePrefill, r.Value(numbers.PrefillDuration)},
		{ReasonStalls, stalled},
		{names.PhaseDecode, r.Value(numbers.DecodeDuration) - stalled},
		{names.PhaseNetwork, r.Value(numbers.NetworkDuration)},
		{names.PhaseTransfer, r.Value(numbers.TransferDuration)},
	} {
		if phase.time > most && (phase.name != ReasonStalls || phase.time > 0) {
			most, reason = phase.time, phase.name
		}
	}
	if r.OpenTail() > most && reason != ReasonStalls { // stalls may include the tail
		return ""
	}
	return reason
}

// tail returns the seconds from the last token of a request or, if it is known that none came, from its start to its end.
// A success waits for nothing after its last token: it has no tail. NaN stands for none, and for an unknown one.
func (r *Entry) tail() float64 {
	duration := r.Value(numbers.RequestDuration)
	switch {
	case r.Outcome == series.Success:
		return math.NaN()
	case r.NoToken:
		return duration
	default:
		return duration - r.Value(numbers.TimeToFirstToken) - r.Value(numbers.DecodeDuration)
	}
}

// minTail is the shortest tail of a request that may have hung: the default of stall_threshold, in seconds.
const minTail = 0.5

// OpenTail returns the seconds from the last token to the end of a request that may have hung: longer than the gaps between
// its tokens. It is NaN for others.
func (r *Entry) OpenTail() float64 {
	if tail := r.tail(); tail > minTail && !(tail <= r.LargestGap) { // which may be NaN
		return tail
	}
	return math.NaN()
}
