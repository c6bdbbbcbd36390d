// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// Values are the evidence of a store, as Saved saves it.
type Values = storageclient.Values[Key, Version]

// Saved saves the evidence of a store.
type Saved = storageclient.Snapshots[Key, Version]

// Version identifies a state of a pair's evidence: equal versions mean equal evidence.
type Version struct {
	of      *evidence
	changes uint64
}

// saved is the stored form of the evidence of a pair.
type saved struct {
	Since   time.Time `json:"since"`
	Vantage string    `json:"vantage,omitempty"`
	// Latest is when each arm last had a request.
	Latest     [2]time.Time `json:"latest"`
	Configured bool         `json:"configured,omitempty"`
	Evidence   []byte       `json:"evidence"`
}

// Values returns what a storage keeps of the pairs across restarts.
func (s *Store) Values() Values {
	return Values{
		Name: "comparisons", Keys: "pairs", Unreadable: "cannot restore the evidence of some comparisons: pairs of `compare` begin anew, others have to be begun with POST",
		Entry:   entryOf,
		Saved:   s.save,
		Restore: s.restore,
	}
}

// entryOf returns the storage key of a pair's evidence.
func entryOf(k Key) string {
	text, _ := json.Marshal(k) // of plain fields
	return storageclient.Entry("pair", text)
}

func (s *Store) save(visit func(Key, Version, func() []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.pairs {
		if e.pair == nil {
			continue
		}
		visit(e.Key, Version{e, e.changes}, func() []byte {
			text, _ := json.Marshal(saved{e.since, e.vantage, e.latest, e.configured, e.pair.AppendBinary(nil)}) // of plain fields
			return text
		})
	}
}

// restore continues a pair. One whose dimension is gone, or that the configuration had, is dropped.
func (s *Store) restore(k Key, encoded []byte) error {
	var from saved
	if err := json.Unmarshal(encoded, &from); err != nil {
		return fmt.Errorf("malformed evidence: %w", err)
	}
	pair, err := canary.Decode(from.Evidence)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(k)
	switch {
	case e != nil:
	case from.Configured || !slices.Contains(s.dimensions, k.Dimension):
		return nil
	case len(s.pairs) >= MaxPairs:
		return ErrFull
	default:
		e = newEvidence(k, s.dimensions)
		s.add(e)
	}
	e.pair, e.since, e.vantage, e.latest = pair, from.Since, from.Vantage, from.Latest
	return nil
}
