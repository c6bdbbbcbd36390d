// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package historystore saves a history in a storage extension, so that it survives a restart
// of the Collector.
package historystore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// Store saves one history. A nil Store saves nothing. It is not safe for concurrent use.
//
// The storage has an index of slots, and an entry for each slot. A save writes the slots that
// changed since the last one, all in one batch: the open slot, and those that were merged.
type Store struct {
	client     storage.Client
	history    *history.Store
	dimensions []string
	stored     map[history.Span]history.Version
}

const indexEntry = "index"

// index lists the slots that have an entry.
type index struct {
	Dimensions []string       `json:"dimensions"`
	Slots      []history.Span `json:"slots"`
}

func entry(span history.Span) string { return fmt.Sprintf("slot/%d/%d", span.Start, span.Width) }

// Open restores a saved history. Without an extension it returns a nil Store. Slots that
// cannot be read are logged and skipped: a gap is better than a Collector that does not start.
func Open(ctx context.Context, host component.Host, extension *component.ID, owner storageclient.Owner, h *history.Store, dimensions []string, logger *zap.Logger) (*Store, error) {
	if extension == nil {
		return nil, nil
	}
	client, err := storageclient.Open(ctx, host, *extension, owner)
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, history: h, dimensions: dimensions, stored: map[history.Span]history.Version{}}
	if err := s.restore(ctx); err != nil {
		logger.Error("cannot restore a part of the live page's history; if this repeats, check the storage extension and its disk", zap.Error(err))
	}
	return s, nil
}

func (s *Store) restore(ctx context.Context) error {
	stored := storage.GetOperation(indexEntry)
	if err := s.client.Batch(ctx, stored); err != nil || stored.Value == nil {
		return err
	}
	var i index
	if err := json.Unmarshal(stored.Value, &i); err != nil {
		return err
	}
	entries := make([]*storage.Operation, 0, len(i.Slots))
	for _, span := range i.Slots {
		s.stored[span] = history.Version{} // known to the next save, which writes or deletes it
		entries = append(entries, storage.GetOperation(entry(span)))
	}
	if !slices.Equal(i.Dimensions, s.dimensions) {
		return errors.New("`dimensions` have changed: the saved history belongs to other series")
	}
	if err := s.client.Batch(ctx, entries...); err != nil {
		return err
	}
	var errs []error
	now := time.Now()
	for at, span := range i.Slots {
		errs = append(errs, s.history.Restore(span, entries[at].Value, len(s.dimensions), now))
	}
	s.history.Saved(func(span history.Span, version history.Version, _ func() []byte) {
		s.stored[span] = version
	})
	return errors.Join(errs...)
}

// Save writes the slots that changed since the last successful save.
func (s *Store) Save(ctx context.Context) error {
	if s == nil {
		return nil
	}
	var changes []*storage.Operation
	held := make(map[history.Span]history.Version, len(s.stored))
	i := index{Dimensions: s.dimensions}
	s.history.Saved(func(span history.Span, version history.Version, encode func() []byte) {
		held[span] = version
		i.Slots = append(i.Slots, span)
		if stored, ok := s.stored[span]; !ok || stored != version {
			changes = append(changes, storage.SetOperation(entry(span), encode()))
		}
	})
	for span := range s.stored {
		if _, ok := held[span]; !ok {
			changes = append(changes, storage.DeleteOperation(entry(span)))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	encoded, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if err := s.client.Batch(ctx, append(changes, storage.SetOperation(indexEntry, encoded))...); err != nil {
		return err
	}
	s.stored = held
	return nil
}

// Close saves a last time and closes the storage.
func (s *Store) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return errors.Join(s.Save(ctx), s.client.Close(ctx))
}
