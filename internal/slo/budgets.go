// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"container/list"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// budgets are the error budgets of one series. Positions are times since the Unix
// epoch.
type budgets struct {
	key     string
	age     *list.Element // in Tracker.byAge; nil for the overflow budgets
	seen    time.Duration // position of the latest verdict
	counted time.Duration // position of the latest verdict that is not NotEligible
	version uint64        // number of verdicts counted since the process started
	// histories holds one entry for each objective that applied, by SLO name.
	histories []objectiveHistory
}

type objectiveHistory struct {
	objective *Objective
	*History
}

func (b *budgets) add(o *Objective, v Verdict, requests uint64, position time.Duration) {
	h := b.history(o)
	if v == NotEligible {
		return
	}
	h.Add(position, CountsOf(v, requests))
	b.version++
	b.counted = max(b.counted, position)
}

// history returns the history of an objective, and creates it if necessary.
func (b *budgets) history(o *Objective) *History {
	i, ok := b.find(o.SLO)
	if !ok {
		b.histories = slices.Insert(b.histories, i, objectiveHistory{o, NewHistory(o.Window)})
	}
	return b.histories[i].History
}

func (b *budgets) find(slo string) (int, bool) {
	return slices.BinarySearchFunc(b.histories, slo, func(h objectiveHistory, slo string) int {
		return cmp.Compare(h.objective.SLO, slo)
	})
}

// appendBinary appends the budgets in the form that decode reads: the position of the
// latest counted verdict, then each history after the name of its SLO. Names and
// histories follow their lengths. Numbers are unsigned varints.
func (b *budgets) appendBinary(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.counted))
	var encoded []byte
	for _, h := range b.histories {
		encoded = h.AppendBinary(encoded[:0])
		dst = protowire.AppendBytes(protowire.AppendString(dst, h.objective.SLO), encoded)
	}
	return dst
}

var errMalformedBudgets = errors.New("malformed error budgets")

// decode reads the output of appendBinary. It skips objectives that the
// configuration no longer has.
func (b *budgets) decode(encoded []byte, objectives map[string]*Objective, now time.Duration) error {
	counted, n := binary.Uvarint(encoded)
	if n <= 0 {
		return errMalformedBudgets
	}
	b.counted = min(time.Duration(counted&(1<<63-1)), now)
	b.seen = b.counted
	for rest := encoded[n:]; len(rest) > 0; {
		name, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			return errMalformedBudgets
		}
		history, m := protowire.ConsumeBytes(rest[n:])
		if m < 0 {
			return errMalformedBudgets
		}
		rest = rest[n+m:]
		o := objectives[string(name)]
		if o == nil {
			continue
		}
		h, err := DecodeHistory(history, o.Window, now)
		if err != nil {
			return err
		}
		*b.history(o) = *h
	}
	return nil
}
