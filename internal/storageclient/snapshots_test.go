// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package storageclient

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var owner = Owner{Kind: component.KindExporter, ID: component.MustNewID("token_sli")}

// counts are values of a component. Their versions are the values.
type counts map[string]int

func (c counts) saved(dimension string) Values[string, int] {
	return Values[string, int]{
		Name: "counts", Keys: "names", Unreadable: "cannot restore counts", Dimensions: []string{dimension},
		Entry: func(name string) string { return "count/" + name },
		Saved: func(visit func(string, int, func() []byte)) {
			for _, name := range slices.Sorted(maps.Keys(c)) {
				visit(name, c[name], func() []byte { return strconv.AppendInt(nil, int64(c[name]), 10) })
			}
		},
		Restore: func(name string, encoded []byte) (err error) {
			n, err := strconv.Atoi(string(encoded))
			if err == nil {
				c[name] = n
			}
			return err
		},
	}
}

// opened is a store after a restart of the Collector.
type opened struct {
	*Snapshots[string, int]
	counts counts
	notes  []byte
	logged *observer.ObservedLogs
}

func open(t *testing.T, backend component.Component, dimension string) opened {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	values := counts{}
	s, notes, err := OpenSnapshots(t.Context(), storagetest.Host{storagetest.FileStorage: backend}, &storagetest.FileStorage, owner, values.saved(dimension), zap.New(core))
	require.NoError(t, err)
	return opened{s, values, notes, logged}
}

// killed closes the storage without a last save, as if the process were killed.
func (o *opened) killed(t *testing.T) {
	t.Helper()
	require.NoError(t, o.client.Close(t.Context()))
}

func TestStore_ValuesSurviveRestarts(t *testing.T) {
	backend := storagetest.NewHost(t)[storagetest.FileStorage]
	o := open(t, backend, "model")
	require.Nil(t, o.notes, "nothing was saved before")
	o.counts["a"], o.counts["b"] = 2, 1
	require.NoError(t, o.Save(t.Context(), []byte("noted")))
	o.counts["a"] = 3 // after the last save
	o.killed(t)

	o = open(t, backend, "model")
	require.Equal(t, "noted", string(o.notes))
	require.Equal(t, counts{"a": 2, "b": 1}, o.counts)
	delete(o.counts, "a")
	o.counts["b"], o.counts["c"] = 2, 1
	require.NoError(t, o.Save(t.Context(), nil))
	require.NoError(t, o.Save(t.Context(), nil))
	o.counts["c"] = 2
	require.NoError(t, o.Close(t.Context(), nil), "saves the changes since the last save")
	require.Zero(t, o.logged.Len())

	o = open(t, backend, "model")
	require.Equal(t, counts{"b": 2, "c": 2}, o.counts)
	require.Empty(t, o.notes)
	require.NoError(t, o.Close(t.Context(), nil))
}

// The saved values belong to other series, even if their keys are the same.
func TestStore_StartsEmptyAfterADimensionWasRenamed(t *testing.T) {
	memory := storagetest.NewMemory()
	o := open(t, memory, "model")
	o.counts["a"] = 1
	require.NoError(t, o.Close(t.Context(), []byte("noted")))

	o = open(t, memory, "gen_ai.request.model")
	require.Empty(t, o.counts)
	require.Nil(t, o.notes)
	logged := o.logged.FilterMessage("cannot restore counts; if this repeats, check the storage extension and its disk").All()
	require.Len(t, logged, 1)
	require.Equal(t, "`dimensions` have changed: the saved counts belong to other series", logged[0].ContextMap()["error"])
	o.counts["a"] = 1
	require.NoError(t, o.Close(t.Context(), nil))

	o = open(t, memory, "gen_ai.request.model")
	require.Equal(t, counts{"a": 1}, o.counts)
	require.Empty(t, o.notes, "those of the other series are gone")
	require.Zero(t, o.logged.Len())
	require.NoError(t, o.Close(t.Context(), nil))
	require.Equal(t, []string{"count/a", "index", "notes"}, slices.Sorted(maps.Keys(memory.Values)))
}

func TestSave_WritesOnlyChanges(t *testing.T) {
	memory := storagetest.NewMemory()
	o := open(t, memory, "model")
	var notes []byte
	writes := func() (keys []string) {
		memory.Fail = func(operation *storage.Operation) error {
			keys = append(keys, operation.Key)
			return nil
		}
		require.NoError(t, o.Save(t.Context(), notes))
		memory.Fail = nil
		return keys
	}
	for _, name := range []string{"a", "b"} {
		o.counts[name] = 1
		require.Equal(t, []string{"count/" + name, "index"}, writes())
	}
	o.counts["b"]++
	require.Equal(t, []string{"count/b"}, writes())
	require.Empty(t, writes())
	notes = []byte("noted")
	require.Equal(t, []string{"notes"}, writes())
	require.Empty(t, writes())

	full := errors.New("no space left on device")
	memory.FailWith(full)
	o.counts["a"]++
	require.ErrorIs(t, o.Save(t.Context(), notes), full)
	require.Equal(t, []string{"count/a"}, writes(), "the next save writes what the storage refused")
	delete(o.counts, "a")
	require.Equal(t, []string{"count/a", "index"}, writes())
	o = open(t, memory, "model")
	require.Empty(t, writes(), "restored values are unchanged")
}

func TestOpen_SkipsUnreadableEntries(t *testing.T) {
	memory := storagetest.NewMemory()
	o := open(t, memory, "model")
	o.counts["a"], o.counts["b"], o.counts["c"] = 1, 2, 3
	require.NoError(t, o.Save(t.Context(), nil))
	memory.Values["count/a"] = []byte("no count")
	delete(memory.Values, "count/b")
	o = open(t, memory, "model")
	require.Equal(t, counts{"c": 3}, o.counts)
	require.Equal(t, 1, o.logged.Len())
	require.NoError(t, o.Save(t.Context(), nil))
	require.Equal(t, []string{"count/c", "index"}, slices.Sorted(maps.Keys(memory.Values)), "unreadable entries are deleted")

	for _, damaged := range []string{"no index", `{"version":1,"names":[7],"dimensions":["model"]}`, `{"version":1,"names":["c"],"dimensions":"model"}`, `[]`} {
		memory.Values["index"] = []byte(damaged)
		o = open(t, memory, "model")
		require.Empty(t, o.counts)
		require.Equal(t, 1, o.logged.Len())
		require.NoError(t, o.Save(t.Context(), nil))
		require.JSONEq(t, `{"version":1,"names":null,"dimensions":["model"]}`, string(memory.Values["index"]), "the next save replaces a damaged index")
	}
}

// Builds before version 0.1.0 wrote no version.
func TestOpen_StartsWithoutWhatAnotherBuildWrote(t *testing.T) {
	for name, index := range map[string]string{
		"earlier": `{"names":["a"],"dimensions":["model"]}`,
		"later":   `{"version":2,"names":["a"],"dimensions":["model"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			memory := storagetest.NewMemory()
			memory.Values["index"], memory.Values["count/a"], memory.Values["notes"] = []byte(index), []byte("1"), []byte("note")
			o := open(t, memory, "model")
			require.Empty(t, o.counts)
			require.Nil(t, o.notes)
			require.Equal(t, 1, o.logged.Len())
			logged := o.logged.All()[0].ContextMap()
			require.Equal(t, "file_storage", logged["storage"])
			require.Equal(t, "another build of tokenpulse wrote the saved counts: start without them, they are replaced", logged["error"])
			o.counts["b"] = 2
			require.NoError(t, o.Save(t.Context(), nil))
			require.NotContains(t, memory.Values, "count/a")
			require.Equal(t, counts{"b": 2}, open(t, memory, "model").counts)
		})
	}
}

func TestOpen_OwnersDoNotShareValues(t *testing.T) {
	h := storagetest.NewHost(t)
	o := open(t, h[storagetest.FileStorage], "model")
	o.counts["a"] = 1
	require.NoError(t, o.Close(t.Context(), nil))
	for _, other := range []Owner{
		{Kind: component.KindConnector, ID: owner.ID},
		{Kind: component.KindExporter, ID: component.MustNewIDWithName("token_sli", "2")},
		{Kind: component.KindExporter, ID: owner.ID, Name: "logs"},
	} {
		values := counts{}
		s, _, err := OpenSnapshots(t.Context(), h, &storagetest.FileStorage, other, values.saved("model"), zap.NewNop())
		require.NoError(t, err)
		require.Empty(t, values)
		require.NoError(t, s.Close(t.Context(), nil))
	}
}

func TestOpen_RejectsUnusableExtensions(t *testing.T) {
	nop := component.NewID(extensiontest.NopType)
	other, err := extensiontest.NewNopFactory().Create(t.Context(), extensiontest.NewNopSettings(extensiontest.NopType), nil)
	require.NoError(t, err)
	h, missing := storagetest.Host{nop: other}, component.MustNewIDWithName("file_storage", "x")
	_, _, err = OpenSnapshots(t.Context(), h, &missing, owner, counts{}.saved("model"), zap.NewNop())
	require.ErrorContains(t, err, "`storage` is \"file_storage/x\", which is not an extension of this Collector; list it under `extensions` and under `service::extensions`")
	_, _, err = OpenSnapshots(t.Context(), h, &nop, owner, counts{}.saved("model"), zap.NewNop())
	require.ErrorContains(t, err, "which is not a storage extension")
}

func TestOpen_WithoutExtensionSavesNothing(t *testing.T) {
	s, _, err := OpenSnapshots(t.Context(), storagetest.Host{}, nil, owner, counts{}.saved("model"), zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, s)
	require.NoError(t, s.Save(t.Context(), nil))
	require.NoError(t, s.Close(t.Context(), nil))
}
