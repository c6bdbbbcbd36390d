// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// openHistory restores a history of series with one dimension.
func openHistory(t *testing.T, backend component.Component) (*historyStore, *history.Store, *series.Engine) {
	t.Helper()
	id, dimensions := storagetest.FileStorage, series.DimensionsOf("gen_ai.request.model")
	h := history.New(1 << 30)
	s, _, err := storageclient.OpenSnapshots(t.Context(), storagetest.Host{id: backend}, &id, storageclient.Owner{}, savedHistory(h, dimensions), zap.NewNop())
	require.NoError(t, err)
	return s, h, series.NewEngine(series.Options{Config: series.Config{Dimensions: dimensions, MaxSeries: 10}, History: h})
}

func recordOne(e *series.Engine, at time.Time) {
	e.Record(&series.Contribution{Dimensions: []string{"llama"}, Arrival: at})
	e.Fold(at)
}

func requestsOf(h *history.Store) (n uint64) {
	view, sum := h.View(time.Time{}, time.Now().Add(time.Hour)), new(history.Sum)
	for slot := range view.Slots() {
		slot.AddTo(func(history.Key) *history.Sum { return sum }, &history.Want{})
	}
	return sum.Requests[series.Success]
}

func TestSavedHistory_StoresMergedSlotsOnce(t *testing.T) {
	memory := storagetest.NewMemory()
	s, h, engine := openHistory(t, memory)
	now := time.Now().Add(-20 * time.Minute).Truncate(15 * time.Minute)
	for i := range 5 {
		recordOne(engine, now.Add(time.Duration(i)*5*time.Second))
	}
	require.NoError(t, s.Save(t.Context(), nil))
	require.Len(t, memory.Values, 6, "five slots and the index")
	h.Maintain(now.Add(10 * time.Minute))
	require.NoError(t, s.Save(t.Context(), nil))
	require.Len(t, memory.Values, 2, "one slot of a minute and the index")
	_, restored, _ := openHistory(t, memory)
	require.EqualValues(t, 5, requestsOf(restored))
}

func TestSavedHistory_SkipsDamagedSlots(t *testing.T) {
	memory := storagetest.NewMemory()
	s, _, engine := openHistory(t, memory)
	for i := range 3 {
		recordOne(engine, time.Now().Add(-time.Duration(3-i)*10*time.Second))
	}
	require.NoError(t, s.Save(t.Context(), nil))
	require.Regexp(t, `^{"dimensions":\["gen_ai.request.model"\],"slots":\[{"Start":\d+,"Width":5}.*"version":1}$`, string(memory.Values["index"]))
	var slots []string
	for key := range memory.Values {
		if strings.HasPrefix(key, "slot/") {
			slots = append(slots, key)
		}
	}
	slices.Sort(slots)
	memory.Values[slots[0]] = []byte{1}
	delete(memory.Values, slots[1])
	s, restored, _ := openHistory(t, memory)
	require.Equal(t, uint64(1), requestsOf(restored))
	require.NoError(t, s.Save(t.Context(), nil))
	require.Len(t, memory.Values, 2, "the damaged slot is deleted")
	index := string(memory.Values["index"])
	memory.Values["index"] = []byte(strings.Replace(index, `,"version":1`, "", 1)) // of an earlier build
	_, restored, _ = openHistory(t, memory)
	require.Zero(t, requestsOf(restored))
	memory.Values["index"] = []byte("{")
	_, restored, _ = openHistory(t, memory)
	require.Zero(t, requestsOf(restored))
}
