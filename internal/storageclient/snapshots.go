// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package storageclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// Values are what Snapshots save, each under a key that JSON can encode.
type Values[K, V comparable] struct {
	// Name is the name of the values in errors, such as budgets.
	Name string
	// Keys is the name of the list of keys in the index.
	Keys string
	// Entry returns the storage key of a value.
	Entry func(K) string
	// Saved calls visit with each value. Equal versions mean equal values.
	Saved func(visit func(key K, version V, encode func() []byte))
	// Restore adds a value that Saved encoded.
	Restore func(key K, encoded []byte) error
	// Dimensions are those of the series that the values belong to.
	Dimensions []string
	// Unreadable is logged if not all values can be restored.
	Unreadable string
}

// Snapshots saves values. A nil Snapshots saves nothing. It is not safe for concurrent use.
//
// The storage has an index of keys, an entry for each value, and the owner's notes. A save
// writes the entries that changed, all in one batch.
type Snapshots[K, V comparable] struct {
	client storage.Client
	values Values[K, V]
	// stored holds the key of every value in the index, and the version of its entry.
	stored map[K]V
	// reindex is set if the stored index must be replaced, whichever values there are.
	reindex bool
	notes   []byte // as stored
}

// OpenSnapshots restores the saved values and returns the notes saved with them. Without an extension
// it returns a nil Snapshots. Entries that cannot be read are logged and skipped: a gap is better
// than a Collector that does not start.
func OpenSnapshots[K, V comparable](
	ctx context.Context, host component.Host, extension *component.ID, owner Owner, values Values[K, V], logger *zap.Logger,
) (*Snapshots[K, V], []byte, error) {
	if extension == nil {
		return nil, nil, nil
	}
	client, err := Open(ctx, host, *extension, owner)
	if err != nil {
		return nil, nil, err
	}
	s := &Snapshots[K, V]{client: client, values: values, stored: map[K]V{}}
	notes, err := s.restore(ctx)
	switch {
	case errors.Is(err, ErrNoAnswer):
		return nil, nil, fmt.Errorf("`storage` %q cannot be read: %w", *extension, err)
	case err != nil:
		logger.Error(values.Unreadable+"; if this repeats, check the storage extension and its disk", zap.Stringer("storage", extension), zap.Error(err))
	}
	return s, notes, nil
}

// Keys of the entries that are not of a value.
const (
	indexEntry = "index"
	notesEntry = "notes"
)

// version is that of the encoding of all values. Builds before version 0.1.0 wrote none.
const version = 1

// readIndex returns the version and the keys of an index, and the dimensions of their series.
func (v *Values[K, V]) readIndex(encoded []byte) (written int, keys []K, dimensions []string, err error) {
	var index map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &index); err != nil {
		return 0, nil, nil, err
	}
	for name, into := range map[string]any{"version": &written, v.Keys: &keys, "dimensions": &dimensions} {
		if value := index[name]; value != nil {
			err = errors.Join(err, json.Unmarshal(value, into))
		}
	}
	return written, keys, dimensions, err
}

// restore returns the notes, unless they belong to other series.
func (s *Snapshots[K, V]) restore(ctx context.Context) (notes []byte, err error) {
	index, saved := storage.GetOperation(indexEntry), storage.GetOperation(notesEntry)
	if err := s.client.Batch(ctx, index, saved); err != nil {
		return nil, err
	}
	s.notes = saved.Value
	if index.Value == nil {
		return nil, nil
	}
	written, keys, dimensions, err := s.values.readIndex(index.Value)
	if err != nil {
		s.reindex = true
		return nil, err
	}
	entries := make([]*storage.Operation, 0, len(keys))
	for _, key := range keys {
		var unknown V
		s.stored[key] = unknown // the next save deletes it if it is not restored
		entries = append(entries, storage.GetOperation(s.values.Entry(key)))
	}
	s.reindex = len(s.stored) < len(keys) // a damaged index has a key twice
	if written != version {
		s.reindex = true
		return nil, fmt.Errorf("another build of tokenpulse wrote the saved %s: start without them, they are replaced", s.values.Name)
	}
	if !slices.Equal(dimensions, s.values.Dimensions) {
		s.reindex = true // series may have the same keys as before
		return nil, fmt.Errorf("`dimensions` have changed: the saved %s belong to other series", s.values.Name)
	}
	if err := s.client.Batch(ctx, entries...); err != nil {
		return nil, err
	}
	var errs []error
	for at, key := range keys {
		if encoded := entries[at].Value; encoded != nil {
			errs = append(errs, s.values.Restore(key, encoded))
		}
	}
	s.values.Saved(func(key K, version V, _ func() []byte) { s.stored[key] = version })
	return s.notes, errors.Join(errs...)
}

// Save writes what changed since the last successful save, and the owner's notes.
func (s *Snapshots[K, V]) Save(ctx context.Context, notes []byte) error {
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

// changes returns the operations that bring the storage up to date, and the versions that it
// then holds.
func (s *Snapshots[K, V]) changes() (changes []*storage.Operation, held map[K]V, err error) {
	held = make(map[K]V, len(s.stored))
	var keys []K
	reindex := s.reindex
	s.values.Saved(func(key K, version V, encode func() []byte) {
		held[key] = version
		keys = append(keys, key)
		if stored, ok := s.stored[key]; !ok || stored != version {
			changes = append(changes, storage.SetOperation(s.values.Entry(key), encode()))
			reindex = reindex || !ok
		}
	})
	for key := range s.stored {
		if _, ok := held[key]; !ok {
			changes = append(changes, storage.DeleteOperation(s.values.Entry(key)))
			reindex = true
		}
	}
	if !reindex {
		return changes, held, nil
	}
	index, err := json.Marshal(map[string]any{"version": version, "dimensions": s.values.Dimensions, s.values.Keys: keys})
	return append(changes, storage.SetOperation(indexEntry, index)), held, err
}

// Close saves a last time and closes the storage.
func (s *Snapshots[K, V]) Close(ctx context.Context, notes []byte) error {
	if s == nil {
		return nil
	}
	return errors.Join(s.Save(ctx, notes), s.client.Close(ctx))
}
