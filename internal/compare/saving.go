// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// Values are the evidence of a store, as Saved saves it.
type Values = storageclient.Values[key, Version]

// Saved saves the evidence of a store.
type Saved = storageclient.Snapshots[key, Version]

// Version identifies a state of a pair's evidence: equal versions mean equal evidence.
type Version struct {
	of      *evidence
	changes uint64
	asked   time.Time
}

// saved is the stored form of the evidence of a pair.
type saved struct {
	Since    time.Time `json:"since"`
	Vantage  string    `json:"vantage,omitempty"`
	Asked    time.Time `json:"asked"`
	Evidence []byte    `json:"evidence"`
}

// Values returns what a storage keeps of the pairs across restarts.
func (s *Store) Values() Values {
	return Values{
		Name: "comparisons", Keys: "pairs", Unreadable: "cannot restore the evidence of some comparisons, which begin anew",
		Entry:   entryOf,
		Saved:   s.save,
		Restore: s.restore,
	}
}

// entryOf returns the storage key of a pair's evidence.
func entryOf(k key) string {
	text, _ := json.Marshal(k) // of plain fields
	sum := sha256.Sum256(text)
	return "pair/" + hex.EncodeToString(sum[:16])
}

func (s *Store) save(visit func(key, Version, func() []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.pairs {
		if e.pair == nil {
			continue
		}
		visit(e.key, Version{e, e.changes, e.asked}, func() []byte {
			text, _ := json.Marshal(saved{e.since, e.vantage, e.asked, e.pair.AppendBinary(nil)}) // of plain fields
			return text
		})
	}
}

// restore continues a pair. One whose dimension is gone is dropped.
func (s *Store) restore(k key, encoded []byte) error {
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
	at := slices.IndexFunc(s.pairs, func(e *evidence) bool { return e.key == k })
	switch {
	case !slices.Contains(s.dimensions, k.Dimension):
		return nil
	case at < 0 && len(s.pairs) >= MaxPairs:
		return nil
	case at < 0:
		at = len(s.pairs)
		s.add(newEvidence(k, s.dimensions))
	}
	e := s.pairs[at]
	e.pair, e.since, e.vantage, e.asked = pair, from.Since, from.Vantage, from.Asked
	return nil
}
