// Package budgetstore keeps the error budgets of an series.Engine in a storage
// extension, so that they survive a restart of the Collector.
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
)

// Owner is the component whose budgets are kept.
type Owner struct {
	Kind component.Kind
	ID   component.ID
	// Name tells what one component keeps several times, once for each signal.
	Name string
}

// Store keeps the budgets of one engine. A nil Store keeps none. It is not safe for
// concurrent use.
type Store struct {
	client     storage.Client
	engine     *series.Engine
	dimensions []string
	// stored holds the key of every series that has an entry, and what the entry
	// says.
	stored map[string]series.BudgetsVersion
	notes  []byte // that are stored
}

// Open restores the budgets that were saved, and returns the notes that were saved
// with them. Without an extension's ID it returns nil. What cannot be read is logged
// and left out: budgets that begin anew are better than a Collector that does not
// start.
func Open(ctx context.Context, host component.Host, extension *component.ID, owner Owner, engine *series.Engine, dimensions []string, logger *zap.Logger) (*Store, []byte, error) {
	if extension == nil {
		return nil, nil, nil
	}
	found, exists := host.GetExtensions()[*extension]
	if !exists {
		return nil, nil, fmt.Errorf("`storage` is %q, which is no extension of this Collector: list it under `extensions` and under `service::extensions`", extension)
	}
	keeper, is := found.(storage.Extension)
	if !is {
		return nil, nil, fmt.Errorf("`storage` is %q, which is an extension that stores nothing: name one that does, such as file_storage", extension)
	}
	client, err := keeper.GetClient(ctx, owner.Kind, owner.ID, owner.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("`storage` %q cannot be used (does another process use it?): %w", extension, err)
	}
	s := &Store{client: client, engine: engine, dimensions: dimensions, stored: map[string]series.BudgetsVersion{}}
	if err := s.restore(ctx); err != nil {
		logger.Error("Some error budgets could not be restored, and begin anew", zap.Error(err))
	}
	return s, s.notes, nil
}

// Keys of the entries beside those of series: what series there are, and the notes.
const (
	indexEntry = "index"
	notesEntry = "notes"
)

// entry returns the key that a series' budgets are stored under. Not every storage
// takes the bytes of a series' key.
func entry(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "series/" + hex.EncodeToString(sum[:16])
}

// index lists what series there are. Their keys are no text.
type index struct {
	Dimensions []string `json:"dimensions"`
	Keys       [][]byte `json:"keys"`
}

func newIndex(dimensions []string, held map[string]series.BudgetsVersion) *index {
	i := &index{Dimensions: dimensions}
	for _, key := range slices.Sorted(maps.Keys(held)) {
		i.Keys = append(i.Keys, []byte(key))
	}
	return i
}

func (s *Store) restore(ctx context.Context) error {
	first := []*storage.Operation{storage.GetOperation(indexEntry), storage.GetOperation(notesEntry)}
	if err := s.client.Batch(ctx, first...); err != nil || first[0].Value == nil {
		return err
	}
	var i index
	if err := json.Unmarshal(first[0].Value, &i); err != nil {
		return err
	}
	entries := make([]*storage.Operation, 0, len(i.Keys))
	for _, key := range i.Keys {
		key := string(key)
		s.stored[key] = series.BudgetsVersion{} // or they would never be deleted
		entries = append(entries, storage.GetOperation(entry(key)))
	}
	if !slices.Equal(i.Dimensions, s.dimensions) {
		return errors.New("`dimensions` are not what they were: these budgets are of other series")
	}
	s.notes = first[1].Value
	if err := s.client.Batch(ctx, entries...); err != nil {
		return err
	}
	now := time.Now()
	var errs []error
	for place, key := range i.Keys {
		if encoded := entries[place].Value; encoded != nil {
			errs = append(errs, s.engine.Restore(string(key), encoded, now))
		}
	}
	return errors.Join(errs...)
}

// Save stores what has changed since it last succeeded, and notes that the owner
// wants to have again after a restart.
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
	s.stored, s.notes = held, notes
	return nil
}

// changes returns what has to be written so that what is held is stored.
func (s *Store) changes() (changes []*storage.Operation, held map[string]series.BudgetsVersion, err error) {
	held = make(map[string]series.BudgetsVersion, len(s.stored))
	others := false // than there were
	s.engine.Budgets(func(key string, version series.BudgetsVersion, appendBinary func([]byte) []byte) {
		held[key] = version
		if before, known := s.stored[key]; !known || before != version {
			changes = append(changes, storage.SetOperation(entry(key), appendBinary(nil)))
			others = others || !known
		}
	})
	for key := range s.stored {
		if _, still := held[key]; !still {
			changes = append(changes, storage.DeleteOperation(entry(key)))
			others = true
		}
	}
	if !others {
		return changes, held, nil
	}
	encoded, err := json.Marshal(newIndex(s.dimensions, held))
	return append(changes, storage.SetOperation(indexEntry, encoded)), held, err
}

// Close saves once more.
func (s *Store) Close(ctx context.Context, notes []byte) error {
	if s == nil {
		return nil
	}
	return errors.Join(s.Save(ctx, notes), s.client.Close(ctx))
}
