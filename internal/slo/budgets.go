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
	// objectives holds one entry for each objective that applied, by SLO name.
	objectives []objectiveWindows
	// failed counts, as bad, the requests that failed but for client mistakes, over the first of BurnWindows.
	// It is nil before the first, and not saved.
	failed *window
}

type objectiveWindows struct {
	objective *Objective
	*Windows
}

func (b *budgets) add(o *Objective, v Verdict, requests uint64, position time.Duration) {
	h := b.windows(o)
	if v == NotEligible {
		return
	}
	h.Add(position, CountsOf(v, requests))
	b.version++
	b.counted = max(b.counted, position)
}

// fail counts a failed request.
func (b *budgets) fail(position time.Duration) {
	if b.failed == nil {
		b.failed = &window{}
	}
	b.failed.advance(position, BurnWindows[0])
	b.failed.add(Counts{Bad: 1})
}

// recentlyFailed returns the number of failed requests in the window.
func (b *budgets) recentlyFailed(position time.Duration) uint64 {
	if b.failed == nil {
		return 0
	}
	b.failed.advance(position, BurnWindows[0])
	return b.failed.sum().Bad
}

// windows returns those of an objective, and creates them if necessary.
func (b *budgets) windows(o *Objective) *Windows {
	i, ok := b.find(o.SLO)
	if !ok {
		b.objectives = slices.Insert(b.objectives, i, objectiveWindows{o, NewWindows(o.Window)})
	}
	return b.objectives[i].Windows
}

func (b *budgets) find(slo string) (int, bool) {
	return slices.BinarySearchFunc(b.objectives, slo, func(h objectiveWindows, slo string) int {
		return cmp.Compare(h.objective.SLO, slo)
	})
}

// appendBinary appends the budgets in the form that decode reads: the position of the
// latest counted verdict, then the windows of each objective after the name of its SLO. Names and
// windows follow their lengths. Numbers are unsigned varints.
func (b *budgets) appendBinary(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.counted))
	var encoded []byte
	for _, h := range b.objectives {
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
		encoded, m := protowire.ConsumeBytes(rest[n:])
		if m < 0 {
			return errMalformedBudgets
		}
		rest = rest[n+m:]
		o := objectives[string(name)]
		if o == nil {
			continue
		}
		h, err := DecodeWindows(encoded, o.Window, now)
		if err != nil {
			return err
		}
		*b.windows(o) = *h
	}
	return nil
}
