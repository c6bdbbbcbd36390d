// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unique"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Span is the place of a slot in time: its start in seconds since the Unix epoch, and its width
// in seconds.
type Span struct{ Start, Width int64 }

// Version identifies a state of a slot: equal versions mean equal slots.
type Version struct{ of *slot }

// Saved calls visit with each slot, for Restore after a restart. encode returns the slot.
func (s *Store) Saved(visit func(span Span, version Version, encode func() []byte)) {
	for _, slot := range s.before(math.MaxInt64) {
		visit(Span{slot.start, slot.width}, Version{slot}, slot.appendBinary)
	}
}

// appendBinary returns the cells, each after the key of its series. Both follow their
// lengths.
func (s *slot) appendBinary() (encoded []byte) {
	encoded = make([]byte, 0, s.size)
	for key, cell := range s.cells {
		encoded = protowire.AppendBytes(protowire.AppendString(encoded, key.Value()), cell)
	}
	return encoded
}

// Restore adds a slot that Saved encoded. Call it before the first Add. dimensions is the
// number of dimensions of the series. A slot that is malformed, older than a week, from the
// future, or at the time of another one is left out. Only a malformed one is an error.
func (s *Store) Restore(span Span, encoded []byte, dimensions int, now time.Time) error {
	restored := &slot{start: span.Start, width: span.Width, cells: map[Key][]byte{}}
	if !slices.Contains(widths, span.Width) || span.Start%span.Width != 0 {
		return fmt.Errorf("malformed slot: start %d, width %d", span.Start, span.Width)
	}
	if err := restored.decode(encoded, dimensions); err != nil {
		return err
	}
	if restored.end() <= now.Unix()-week || restored.start > now.Unix() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.slots, span.Start, func(slot *slot, start int64) int { return cmp.Compare(slot.start, start) })
	if at > 0 && s.slots[at-1].end() > restored.start || at < len(s.slots) && s.slots[at].start < restored.end() {
		return nil
	}
	s.slots = slices.Insert(s.slots, at, restored)
	s.size += restored.size
	return nil
}

// widths are those that slots can have: those of the tiers of all levels.
var widths = func() (all []int64) {
	for level := range maxLevel + 1 {
		for _, tier := range tiers(level) {
			all = append(all, tier.width)
		}
	}
	return all
}()

var errMalformedSlot = errors.New("malformed slot of the history")

func (s *slot) decode(encoded []byte, dimensions int) error {
	var sum Sum
	for len(encoded) > 0 {
		key, n := protowire.ConsumeString(encoded)
		if n < 0 || !series.IsKey(key, dimensions) {
			return errMalformedSlot
		}
		cell, m := protowire.ConsumeBytes(encoded[n:])
		if m < 0 {
			return errMalformedSlot
		}
		sum.Reset()
		if err := sum.add(cell, &everything); err != nil {
			return err
		}
		s.set(unique.Make(key), slices.Clone(cell))
		encoded = encoded[n+m:]
	}
	return nil
}
