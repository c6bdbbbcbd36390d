// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// storedBudgets are budgets of series with the dimension model.
type storedBudgets struct {
	*budgetStore
	tracker *slo.Tracker
	notes   []byte
	logged  *observer.ObservedLogs
}

// restored restores the budgets of a storage.
func restored(t *testing.T, memory *storagetest.Memory) storedBudgets {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	b := storedBudgets{logged: logged, tracker: slo.NewTracker(slo.TrackerOptions{
		Objectives: []slo.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}},
		MaxSeries:  100,
		IdleAfter:  time.Hour,
	}, time.Now())}
	host, id := storagetest.Host{storagetest.FileStorage: memory}, storagetest.FileStorage
	var err error
	b.budgetStore, b.notes, err = storageclient.OpenSnapshots(t.Context(), host, &id, storageclient.Owner{}, savedBudgets(b.tracker, series.DimensionsOf("model")), zap.New(core))
	require.NoError(t, err)
	return b
}

// keyOf returns the key of the series of a model.
func keyOf(model string) budgetKey {
	return budgetKey((&series.Contribution{Dimensions: []string{model}}).AppendKey(nil))
}

// bad records a bad request of a model.
func (b *storedBudgets) bad(model string) {
	var verdicts slo.VerdictSet
	verdicts.Add("tpot", slo.Bad)
	b.tracker.Record([]byte(keyOf(model)), &verdicts, time.Now())
}

// keys returns the sorted keys of the series with budgets.
func (b *storedBudgets) keys() []string {
	keys := map[string]bool{}
	b.tracker.Visit(time.Now(), func(b *slo.Budgets) { keys[strings.Clone(b.Key)] = true })
	return slices.Sorted(maps.Keys(keys))
}

func TestBudgets_AreStoredUntilTheyExpire(t *testing.T) {
	memory := storagetest.NewMemory()
	b := restored(t, memory)
	b.bad("a")
	require.NoError(t, b.Save(t.Context(), nil))
	// The index has AppendKey's bytes in base64. sha256 of these bytes names the entry.
	require.JSONEq(t, `{"version":1,"dimensions":["model"],"keys":["AWEA"]}`, string(memory.Values["index"]))
	const entry = "series/16b7de529da4f96b7610c3a1a2b6fe66"
	require.Contains(t, memory.Values, entry)
	b.tracker.Expire(time.Now().Add(2 * time.Hour)) // idle: the budget stays
	require.NoError(t, b.Save(t.Context(), nil))
	require.Contains(t, memory.Values, entry)
	b.tracker.Expire(time.Now().Add(721 * time.Hour))
	require.NoError(t, b.Save(t.Context(), nil))
	require.NotContains(t, memory.Values, entry)
}

func TestBudgets_StartWithoutThoseOfAnEarlierBuild(t *testing.T) {
	memory := storagetest.NewMemory()
	b := restored(t, memory)
	b.bad("a")
	require.NoError(t, b.Save(t.Context(), nil))
	memory.Values["index"] = []byte(`{"dimensions":["model"],"keys":["AWEA"]}`)
	b = restored(t, memory)
	require.Empty(t, b.keys())
	require.Len(t, b.logged.All(), 1)
	require.Contains(t, b.logged.All()[0].ContextMap()["error"], "another build of tokenpulse wrote the saved budgets")
}

func TestBudgets_SkipMalformedSeriesKeys(t *testing.T) {
	memory := storagetest.NewMemory()
	b := restored(t, memory)
	b.bad("a")
	require.NoError(t, b.Save(t.Context(), nil))
	for _, malformed := range []budgetKey{"\x01a", "\x01a\x00\x00"} {
		memory.Values[malformed.entry()] = memory.Values[keyOf("a").entry()]
	}
	memory.Values["index"] = []byte(`{"version":1,"dimensions":["model"],"keys":["AWE=","AWEAAA==","AWEA"]}`)
	b = restored(t, memory)
	require.Equal(t, []string{string(keyOf("a"))}, b.keys())
	b.tracker.Visit(time.Now(), func(b *slo.Budgets) { require.EqualValues(t, 1, b.Each[0].Recent.Budget.Bad) })
	logged := b.logged.FilterMessage("cannot restore some error budgets, which start empty; if this repeats, check the storage extension and its disk").All()
	require.Len(t, logged, 1)
	require.Equal(t, "malformed series key: \"\\x01a\"\nmalformed series key: \"\\x01a\\x00\\x00\"", logged[0].ContextMap()["error"])
}

func TestRound_ReportsRefusedSavesOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, id := storagetest.NewMemory(), storagetest.FileStorage
		h := newHarness(t, func(s *Settings) { s.Config.StorageID = &id })
		_, err := h.Start(t.Context(), storagetest.Host{id: memory})
		require.NoError(t, err)
		h.Record(t.Context(), spans(t, 1, met))
		memory.FailWith(errors.New("disk full"))
		for range 13 { // 65 seconds
			h.Round(t.Context())
			time.Sleep(5 * time.Second)
		}
		require.Equal(t, 2, h.logs.FilterMessageSnippet("the storage refused a save").Len())
		require.EqualValues(t, 13, h.counted(t, "token_sli_saves_failed"))
		memory.FailWith(nil)
	})
}

// FuzzRestore reads a damaged storage. Whatever it holds, requests count, the next save
// replaces what could not be read, and another restart reads all of it. Each restored
// budget belongs to a series that can be published.
func FuzzRestore(f *testing.F) {
	type index struct {
		Version    int      `json:"version"`
		Dimensions []string `json:"dimensions"`
		Keys       [][]byte `json:"keys"`
	}
	keys := func(keys ...string) []byte {
		i := index{Version: 1, Dimensions: []string{"model"}}
		for _, key := range keys {
			i.Keys = append(i.Keys, []byte(key))
		}
		encoded, err := json.Marshal(&i)
		require.NoError(f, err)
		return encoded
	}
	tracker := slo.NewTracker(slo.TrackerOptions{Objectives: []slo.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}}, MaxSeries: 1}, time.Now())
	m := string(keyOf("m"))
	(&storedBudgets{tracker: tracker}).bad("m")
	var budgets []byte
	tracker.Saved(func(_ string, _ slo.Version, encode func() []byte) { budgets = encode() })
	f.Add(keys(m), budgets, []byte("notes"))
	f.Add(keys(m, m, "\x81\x00m\x00", "", "\x01\xff\x00"), budgets, []byte{})
	f.Add(keys("\xff", m), budgets[:len(budgets)/2], []byte{0})
	f.Add([]byte(`{"version":1,"dimensions":["other"],"keys":["AW0A"]}`), budgets, []byte{})
	f.Add([]byte(`{"version":1,"dimensions":["model"],"keys":[null,7]}`), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, storedIndex, stored, notes []byte) {
		memory := storagetest.NewMemory()
		memory.Values["index"], memory.Values["notes"] = storedIndex, notes
		memory.Values[keyOf("m").entry()] = stored
		var listed index
		if json.Unmarshal(storedIndex, &listed) == nil {
			for _, key := range listed.Keys {
				memory.Values[budgetKey(key).entry()] = stored
			}
		}
		first := restored(t, memory)
		first.bad("m")
		for _, key := range first.keys() {
			require.True(t, series.IsKey(key, 1), "%q", key)
		}
		require.NoError(t, first.Save(t.Context(), nil))

		second := restored(t, memory)
		require.Zero(t, second.logged.Len())
		require.Empty(t, second.notes, "older notes are replaced")
		require.Equal(t, first.keys(), second.keys())
		require.Contains(t, second.keys(), m)
		var lists map[string]json.RawMessage // of a name that a damaged index has twice, the last list holds
		require.NoError(t, json.Unmarshal(memory.Values["index"], &lists))
		var kept [][]byte
		require.NoError(t, json.Unmarshal(lists["keys"], &kept))
		require.Len(t, kept, len(second.keys()))
	})
}
