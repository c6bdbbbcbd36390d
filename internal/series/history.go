// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// HistorySlot is the finest resolution of a history. Its slots begin at whole multiples
// of it since the Unix epoch.
const HistorySlot = 5 * time.Second

// HistoryQuantities are the quantities that a history has.
var HistoryQuantities = [...]numbers.ID{
	numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.RequestDuration, numbers.InterTokenLatency,
	numbers.QueueDuration, numbers.PrefillDuration, numbers.DecodeDuration, numbers.NetworkDuration, numbers.TransferDuration,
}

// History receives the increments of a series within one slot, in one or several calls. The Gain
// is valid during the call only. The series is locked meanwhile.
type History interface{ Add(*Gain) }

// Gain holds the increments of a series since its previous Gain.
type Gain struct {
	Key string
	// Slot is the start of the slot.
	Slot     time.Time
	Outcomes [outcomes]OutcomeGain
	Counts   [counts]float64
	SLOs     []SLOGain
}

// OutcomeGain is the part of a Gain for one outcome.
type OutcomeGain struct {
	Requests uint64
	// Distributions holds the new values of each quantity, nil for a quantity without new values.
	Distributions [numbers.Distributions]*sketch.Sketch
	Prompts       []Prompt
}

// SLOGain is the part of a Gain for one SLO: the new requests by verdict.
type SLOGain struct {
	Name     string
	Requests [slo.Verdicts]uint64
}

// reportGain adds the gain since the last call to the history. mu is held.
func (s *series) reportGain() {
	g := &s.engine.gain
	s.engine.gaining.Lock()
	defer s.engine.gaining.Unlock()
	*g = Gain{Key: s.key, Slot: s.page.history, SLOs: g.SLOs[:0]}
	changed := false
	for i, o := range s.outcomes {
		if o != nil {
			changed = o.gain(&g.Outcomes[i]) || changed
		}
	}
	for c, n := range s.counts {
		g.Counts[c] = n.Value - s.reported[c]
		s.reported[c] = n.Value
		changed = changed || g.Counts[c] != 0
	}
	g.SLOs = s.verdicts.gain(g.SLOs)
	if changed || len(g.SLOs) > 0 {
		s.engine.history.Add(g)
	}
}

func (o *outcomeSeries) gain(into *OutcomeGain) (changed bool) {
	into.Requests, o.reported = o.requests-o.reported, o.requests
	changed = into.Requests > 0
	for _, q := range HistoryQuantities {
		if h := o.histograms[q]; h != nil && h.pending.Count() > 0 {
			into.Distributions[q], changed = &h.pending, true
		}
	}
	into.Prompts, o.prompts = o.prompts, o.prompts[:0]
	return changed
}

// gain appends what each SLO gained since the last call.
func (c *verdictCounters) gain(dst []SLOGain) []SLOGain {
	for name, counter := range c.byName {
		if counter.requests == counter.reported {
			continue
		}
		gain := SLOGain{Name: name}
		for verdict, n := range counter.requests {
			gain.Requests[verdict] = n - counter.reported[verdict]
		}
		counter.reported = counter.requests
		dst = append(dst, gain)
	}
	return dst
}
