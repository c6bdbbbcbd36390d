// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package historystore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

var dimensions = []string{"gen_ai.request.model"}

// open opens a store of a new history on a backend.
func open(t *testing.T, backend component.Component) (*Store, *history.Store, *series.Engine) {
	t.Helper()
	id := storagetest.FileStorage
	h := history.New(1 << 30)
	s, err := Open(t.Context(), storagetest.Host{id: backend}, &id, storageclient.Owner{}, h, dimensions, zap.NewNop())
	require.NoError(t, err)
	return s, h, series.NewEngine(series.Options{Config: series.Config{Dimensions: dimensions, MaxSeries: 10}, History: h})
}

func record(e *series.Engine, at time.Time) {
	e.Record(&series.Request{Dimensions: []string{"llama"}, Arrival: at})
	e.Fold(at)
}

func requests(h *history.Store) (n uint64) {
	view, sum := h.View(time.Time{}), new(history.Sum)
	for slot := range view.Slots() {
		slot.AddTo(func(history.Key) *history.Sum { return sum }, &history.Want{})
	}
	return sum.Requests[series.Success]
}

func TestSave_WritesOnlyChanges(t *testing.T) {
	memory := storagetest.NewMemory()
	s, h, engine := open(t, memory)
	now := time.Now().Add(-20 * time.Minute).Truncate(15 * time.Minute)
	for i := range 5 {
		record(engine, now.Add(time.Duration(i)*5*time.Second))
	}
	var written []string
	memory.Fail = func(o *storage.Operation) error {
		if o.Type != storage.Get {
			written = append(written, o.Key)
		}
		return nil
	}
	require.NoError(t, s.Save(t.Context()))
	require.Len(t, written, 6, "five slots and the index")
	written = nil
	require.NoError(t, s.Save(t.Context()))
	require.Empty(t, written, "nothing changed")
	record(engine, now.Add(20*time.Second))
	require.NoError(t, s.Save(t.Context()))
	require.Len(t, written, 2, "one slot and the index")
	written = nil
	h.Maintain(now.Add(10 * time.Minute))
	require.NoError(t, s.Save(t.Context()))
	require.Len(t, written, 7, "one slot of a minute, five deletions, the index")
	require.Len(t, memory.Values, 2)
}

func TestSave_IsTriedAgainAfterAFailure(t *testing.T) {
	memory := storagetest.NewMemory()
	s, _, engine := open(t, memory)
	record(engine, time.Now())
	memory.Fail = func(*storage.Operation) error { return errors.New("disk full") }
	require.Error(t, s.Save(t.Context()))
	memory.Fail = nil
	require.NoError(t, s.Save(t.Context()))
	_, restored, _ := open(t, memory)
	require.Equal(t, uint64(1), requests(restored))
}

func TestOpen_SkipsDamagedSlots(t *testing.T) {
	memory := storagetest.NewMemory()
	s, _, engine := open(t, memory)
	for i := range 3 {
		record(engine, time.Now().Add(-time.Duration(3-i)*10*time.Second))
	}
	require.NoError(t, s.Save(t.Context()))
	var slots []string
	for key := range memory.Values {
		if strings.HasPrefix(key, "slot/") {
			slots = append(slots, key)
		}
	}
	slices.Sort(slots)
	memory.Values[slots[0]] = []byte{1}
	delete(memory.Values, slots[1])
	s, restored, _ := open(t, memory)
	require.Equal(t, uint64(1), requests(restored))
	require.NoError(t, s.Save(t.Context()))
	require.Len(t, memory.Values, 2, "the damaged slot is deleted")
	memory.Values["index"] = []byte("{")
	_, restored, _ = open(t, memory)
	require.Zero(t, requests(restored))
}

func TestOpen_WithoutExtensionSavesNothing(t *testing.T) {
	s, err := Open(t.Context(), storagetest.Host{}, nil, storageclient.Owner{}, history.New(1), nil, zap.NewNop())
	require.NoError(t, err)
	require.NoError(t, s.Save(t.Context()))
	require.NoError(t, s.Close(t.Context()))
	_, err = Open(t.Context(), storagetest.Host{}, &storagetest.FileStorage, storageclient.Owner{}, history.New(1), nil, zap.NewNop())
	require.ErrorContains(t, err, "`storage` is")
}
