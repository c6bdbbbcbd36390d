// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package budgetstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// memory is a storage whose content the test chooses.
type memory map[string][]byte

func (m memory) Get(_ context.Context, key string) ([]byte, error) { return m[key], nil }

func (m memory) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

func (m memory) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

func (m memory) Close(context.Context) error { return nil }

func (m memory) Batch(_ context.Context, operations ...*storage.Operation) error {
	for _, o := range operations {
		switch o.Type {
		case storage.Get:
			o.Value = m[o.Key]
		case storage.Set:
			m[o.Key] = o.Value
		case storage.Delete:
			delete(m, o.Key)
		}
	}
	return nil
}

// restored returns a store over a storage, and the error of reading it.
func (m memory) restored(t *testing.T) (*Store, error) {
	t.Helper()
	s := &Store{client: m, tracker: newTracker(), dimensions: dimensions, stored: map[string]slo.Version{}}
	_, err := s.restore(t.Context())
	return s, err
}

// FuzzRestore reads a damaged storage. Whatever it holds, requests count, the next save
// replaces what could not be read, and another restart reads all of it. Each restored
// budget belongs to a series that can be published.
func FuzzRestore(f *testing.F) {
	tracker := newTracker()
	bad(tracker, "m", time.Now())
	var budgets []byte
	tracker.Saved(func(_ string, _ slo.Version, encode func() []byte) { budgets = encode() })
	keys := func(keys ...string) []byte {
		i := index{Dimensions: dimensions}
		for _, key := range keys {
			i.Keys = append(i.Keys, []byte(key))
		}
		encoded, err := json.Marshal(&i)
		require.NoError(f, err)
		return encoded
	}
	m := string(key("m"))
	f.Add(keys(m), budgets, []byte("notes"))
	f.Add(keys(m, m, "\x81\x00m\x00", "", "\x01\xff\x00"), budgets, []byte{})
	f.Add(keys("\xff", m), budgets[:len(budgets)/2], []byte{0})
	f.Add([]byte(`{"dimensions":["other"],"keys":["AW0A"]}`), budgets, []byte{})
	f.Add([]byte(`{"dimensions":["model"],"keys":[null,7]}`), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, storedIndex, stored, notes []byte) {
		held := memory{indexEntry: storedIndex, notesEntry: notes, entry(m): stored}
		var listed index
		if json.Unmarshal(storedIndex, &listed) == nil {
			for _, key := range listed.Keys {
				held[entry(string(key))] = stored
			}
		}
		first, _ := held.restored(t)
		bad(first.tracker, "m", time.Now())
		first.tracker.Visit(time.Now(), func(b *slo.Budgets) {
			require.True(t, series.IsKey(b.Key, len(dimensions)), "%q", b.Key)
		})
		require.NoError(t, first.Save(t.Context(), nil))

		second, err := held.restored(t)
		require.NoError(t, err)
		require.Empty(t, second.notes, "older notes are replaced")
		now := time.Now()
		require.Equal(t, budgetKeys(first, now), budgetKeys(second, now))
		require.Contains(t, budgetKeys(second, now), m)
		require.NoError(t, json.Unmarshal(held[indexEntry], &listed))
		require.Len(t, listed.Keys, len(budgetKeys(second, now)))
	})
}

// budgetKeys returns the sorted keys of the series with budgets.
func budgetKeys(s *Store, now time.Time) []string {
	keys := map[string]bool{}
	s.tracker.Visit(now, func(b *slo.Budgets) { keys[strings.Clone(b.Key)] = true })
	return slices.Sorted(maps.Keys(keys))
}
