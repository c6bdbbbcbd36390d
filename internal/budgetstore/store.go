// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package budgetstore saves the error budgets of an slo.Tracker in a storage extension,
// so that they survive a restart of the Collector.
package budgetstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// Owner identifies the saved budgets among those of other components.
type Owner struct {
	Kind component.Kind
	ID   component.ID
	// Name separates the budgets of one component's outputs.
	Name string
}

// Store saves the budgets of one tracker. A nil Store saves nothing. It is not safe for
// concurrent use.
//
// The storage has an index of series keys, an entry for each series, and the owner's
// notes. A save writes the entries that changed, all in one batch.
type Store struct {
	client     storage.Client
	tracker    *slo.Tracker
	dimensions []string
	// stored holds the key of every series in the index, and the version of its entry.
	stored map[string]slo.Version
	// reindex is set if the stored index must be replaced, whichever series there are.
	reindex bool
	notes   []byte // as stored
}

// Open restores the saved budgets into the tracker and returns the notes saved with
// them. Without an extension it returns a nil Store. Entries that cannot be read are
// logged and skipped: empty budgets are better than a Collector that does not start.
func Open(ctx context.Context, host component.Host, extension *component.ID, owner Owner, tracker *slo.Tracker, dimensions []string, logger *zap.Logger) (*Store, []byte, error) {
	if extension == nil {
		return nil, nil, nil
	}
	client, err := storageclient.Open(ctx, host, *extension, storageclient.Owner(owner))
	if err != nil {
		return nil, nil, err
	}
	s := &Store{client: client, tracker: tracker, dimensions: dimensions, stored: map[string]slo.Version{}}
	notes, err := s.restore(ctx)
	if err != nil {
		logger.Error("cannot restore some error budgets, which start empty; if this repeats, check the storage extension and its disk", zap.Error(err))
	}
	return s, notes, nil
}

// Keys of the entries that are not of a series.
const (
	indexEntry = "index"
	notesEntry = "notes"
)

// entry returns the storage key of a series' budgets. A series key is binary, which
// some storages do not accept as a key.
func entry(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "series/" + hex.EncodeToString(sum[:16])
}

// index lists the series that have an entry. Keys are bytes, because they are not UTF-8.
type index struct {
	Dimensions []string `json:"dimensions"`
	Keys       [][]byte `json:"keys"`
}

func newIndex(dimensions []string, held map[string]slo.Version) *index {
	i := &index{Dimensions: dimensions}
	for _, key := range slices.Sorted(maps.Keys(held)) {
		i.Keys = append(i.Keys, []byte(key))
	}
	return i
}

// restore returns the notes, unless they belong to other series.
func (s *Store) restore(ctx context.Context) (notes []byte, err error) {
	first := []*storage.Operation{storage.GetOperation(indexEntry), storage.GetOperation(notesEntry)}
	if err := s.client.Batch(ctx, first...); err != nil {
		return nil, err
	}
	s.notes = first[1].Value
	if first[0].Value == nil {
		return nil, nil
	}
	var i index
	if err := json.Unmarshal(first[0].Value, &i); err != nil {
		s.reindex = true
		return nil, err
	}
	entries := make([]*storage.Operation, 0, len(i.Keys))
	for _, key := range i.Keys {
		key := string(key)
		s.stored[key] = slo.Version{} // known to the next save, which deletes it if it was not restored
		entries = append(entries, storage.GetOperation(entry(key)))
	}
	if !slices.Equal(i.Dimensions, s.dimensions) {
		s.reindex = true // series may have the same keys as before
		return nil, errors.New("`dimensions` have changed: the saved budgets belong to other series")
	}
	if err := s.client.Batch(ctx, entries...); err != nil {
		return nil, err
	}
	now := time.Now()
	var errs []error
	for at, key := range i.Keys {
		key := string(key)
		switch encoded := entries[at].Value; {
		case encoded == nil:
		case !series.IsKey(key, len(s.dimensions)):
			errs = append(errs, fmt.Errorf("malformed series key: %q", key))
		default:
			errs = append(errs, s.tracker.Restore(key, encoded, now))
		}
	}
	return s.notes, errors.Join(errs...)
}

// Save writes what changed since the last successful save, and the owner's notes.
func (s *Store) Save(ctx context.Context, notes []byte) error {
	if s == nil {
		return nil
	}
	changes, held, err := s.changes()
	if err != nil {
		return err
	}
	if !bytes.Equal(notes, s.notes) {
		changes = append(changes, storage.SetOperation(notesEntry, notes))
	}
	if len(changes) == 0 {
		return nil
	}
	if err := s.client.Batch(ctx, changes...); err != nil {
		return err
	}
	s.stored, s.notes, s.reindex = held, notes, false
	return nil
}

// changes returns the operations that bring the storage up to date, and the versions
// that it then holds.
func (s *Store) changes() (changes []*storage.Operation, held map[string]slo.Version, err error) {
	held = make(map[string]slo.Version, len(s.stored))
	reindex := s.reindex
	s.tracker.Saved(func(key string, version slo.Version, encode func() []byte) {
		held[key] = version
		if stored, ok := s.stored[key]; !ok || stored != version {
			changes = append(changes, storage.SetOperation(entry(key), encode()))
			reindex = reindex || !ok
		}
	})
	for key := range s.stored {
		if _, ok := held[key]; !ok {
			changes = append(changes, storage.DeleteOperation(entry(key)))
			reindex = true
		}
	}
	if !reindex {
		return changes, held, nil
	}
	encoded, err := json.Marshal(newIndex(s.dimensions, held))
	return append(changes, storage.SetOperation(indexEntry, encoded)), held, err
}

// Close saves a last time and closes the storage.
func (s *Store) Close(ctx context.Context, notes []byte) error {
	if s == nil {
		return nil
	}
	return errors.Join(s.Save(ctx, notes), s.client.Close(ctx))
}
