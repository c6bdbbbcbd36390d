// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package budgetstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	owner      = Owner{Kind: component.KindExporter, ID: component.MustNewID("token_sli")}
	dimensions = []string{"model"}
)

// newHost returns a Collector with a file_storage and an extension that is not a storage.
func newHost(t *testing.T) storagetest.Host {
	t.Helper()
	host := storagetest.NewHost(t, 0)
	other, err := extensiontest.NewNopFactory().Create(t.Context(), extensiontest.NewNopSettings(extensiontest.NopType), nil)
	require.NoError(t, err)
	host[component.NewID(extensiontest.NopType)] = other
	return host
}

func newTracker() *slo.Tracker {
	return slo.NewTracker(slo.TrackerOptions{
		Objectives: []slo.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}},
		MaxSeries:  100,
		IdleAfter:  time.Hour,
	}, time.Now())
}

// key returns the key of the series of a model.
func key(model string) []byte { return (&series.Request{Dimensions: []string{model}}).AppendKey(nil) }

// bad records a bad request of a model.
func bad(tracker *slo.Tracker, model string, now time.Time) {
	var verdicts slo.VerdictSet
	verdicts.Add("tpot", slo.Bad)
	tracker.Record(key(model), &verdicts, now)
}

// spent returns the number of bad requests in the budget of each model.
func spent(tracker *slo.Tracker, now time.Time) map[string]uint64 {
	all := map[string]uint64{}
	tracker.Visit(now, func(b *slo.Budgets) {
		all[series.IdentityOf(b.Key).Dimensions[0]] = b.Each[0].Recent.Budget.Bad
	})
	return all
}

// opened returns a store, the tracker that it restored, the notes, and the log.
func opened(t *testing.T, h storagetest.Host, dimensions []string) (*Store, *slo.Tracker, []byte, *observer.ObservedLogs) {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	tracker := newTracker()
	s, notes, err := Open(t.Context(), h, &storagetest.FileStorage, owner, tracker, dimensions, zap.New(core))
	require.NoError(t, err)
	return s, tracker, notes, logged
}

// killed closes the storage without a last save, as if the process were killed.
func killed(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.client.Close(t.Context()))
}

func TestStore_BudgetsSurviveRestarts(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, tracker, notes, _ := opened(t, h, dimensions)
	require.Nil(t, notes, "nothing was saved before")
	bad(tracker, "a", now)
	bad(tracker, "a", now)
	bad(tracker, "b", now)
	require.NoError(t, s.Save(t.Context(), []byte("noted")))
	bad(tracker, "a", now) // after the last save
	killed(t, s)

	s, tracker, notes, logged := opened(t, h, dimensions)
	require.Equal(t, "noted", string(notes))
	require.Equal(t, map[string]uint64{"a": 2, "b": 1}, spent(tracker, now))
	bad(tracker, "b", now)
	bad(tracker, "c", now)
	require.NoError(t, s.Save(t.Context(), nil))
	require.NoError(t, s.Save(t.Context(), nil))
	bad(tracker, "c", now)
	require.NoError(t, s.Close(t.Context(), nil), "saves the changes since the last save")

	s, tracker, _, _ = opened(t, h, dimensions)
	require.Equal(t, map[string]uint64{"a": 2, "b": 2, "c": 2}, spent(tracker, now))
	require.NoError(t, s.Close(t.Context(), nil))
	require.Zero(t, logged.Len())
}

// The series of both dimensions have the same key.
func TestStore_BudgetsSurviveRestartsAfterADimensionWasRenamed(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, tracker, _, _ := opened(t, h, []string{"model"})
	bad(tracker, "a", now)
	require.NoError(t, s.Close(t.Context(), []byte("noted")))

	s, tracker, notes, logged := opened(t, h, []string{"gen_ai.request.model"})
	require.Empty(t, spent(tracker, now))
	require.Nil(t, notes)
	require.Equal(t, 1, logged.Len())
	bad(tracker, "a", now)
	require.NoError(t, s.Close(t.Context(), nil))

	s, tracker, notes, logged = opened(t, h, []string{"gen_ai.request.model"})
	require.Equal(t, map[string]uint64{"a": 1}, spent(tracker, now))
	require.Empty(t, notes, "those of the other series are gone")
	require.Zero(t, logged.Len())
	require.NoError(t, s.Close(t.Context(), nil))
}

func TestSave_WritesOnlyChanges(t *testing.T) {
	h := newHost(t)
	s, tracker, _, _ := opened(t, h, dimensions)
	counting := &client{Client: s.client}
	s.client = counting
	now := time.Now()
	var notes []byte
	writes := func() (keys []string) {
		counting.operations = nil
		require.NoError(t, s.Save(t.Context(), notes))
		for _, o := range counting.operations {
			keys = append(keys, o.Key)
		}
		return keys
	}
	keyOf := map[string]string{}
	for _, model := range []string{"a", "b"} {
		bad(tracker, model, now)
		written := writes()
		require.Len(t, written, 2)
		require.Equal(t, indexEntry, written[1])
		keyOf[model] = written[0]
	}
	bad(tracker, "b", now)
	require.Equal(t, []string{keyOf["b"]}, writes())
	require.Empty(t, writes())
	notes = []byte("noted")
	require.Equal(t, []string{notesEntry}, writes())
	require.Empty(t, writes())

	counting.fails = true
	bad(tracker, "a", now)
	require.ErrorIs(t, s.Save(t.Context(), nil), errFull)
	counting.fails = false
	require.Equal(t, []string{keyOf["a"]}, writes(), "the next save writes what the storage refused")

	require.NoError(t, s.Close(t.Context(), nil))
}

func TestSave_DeletesExpiredBudgets(t *testing.T) {
	h := newHost(t)
	s, tracker, _, _ := opened(t, h, dimensions)
	now := time.Now()
	bad(tracker, "a", now)
	require.NoError(t, s.Save(t.Context(), nil))
	var key string
	for k := range s.stored {
		key = k
	}
	stored := func() []byte {
		v, err := s.client.Get(t.Context(), entry(key))
		require.NoError(t, err)
		return v
	}
	require.NotNil(t, stored())
	tracker.Expire(now.Add(2 * time.Hour)) // idle: the budget stays
	require.NoError(t, s.Save(t.Context(), nil))
	require.NotNil(t, stored())
	tracker.Expire(now.Add(721 * time.Hour))
	require.NoError(t, s.Save(t.Context(), nil))
	require.Nil(t, stored())
	require.NoError(t, s.Close(t.Context(), nil))
}

// With other dimensions, the saved keys belong to other series. Their entries are deleted.
func TestOpen_OtherDimensionsStartEmpty(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, tracker, _, _ := opened(t, h, dimensions)
	bad(tracker, "a", now)
	require.NoError(t, s.Close(t.Context(), nil))

	s, tracker, _, logged := opened(t, h, []string{"service"})
	require.Empty(t, spent(tracker, now))
	require.Equal(t, 1, logged.FilterMessage("cannot restore some error budgets, which start empty; if this repeats, check the storage extension and its disk").Len())
	require.NoError(t, s.Close(t.Context(), nil))

	s, tracker, _, logged = opened(t, h, dimensions)
	require.Empty(t, spent(tracker, now))
	require.Equal(t, 1, logged.Len(), "the dimensions differ again")
	require.NoError(t, s.Close(t.Context(), nil))
}

func TestOpen_SkipsUnreadableEntries(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, tracker, _, _ := opened(t, h, dimensions)
	bad(tracker, "a", now)
	bad(tracker, "b", now)
	require.NoError(t, s.Save(t.Context(), nil))
	for key := range s.stored {
		require.NoError(t, s.client.Set(t.Context(), entry(key), []byte("no budget")))
		break
	}
	killed(t, s)
	s, tracker, _, logged := opened(t, h, dimensions)
	require.Len(t, spent(tracker, now), 1)
	require.Equal(t, 1, logged.Len())
	require.NoError(t, s.client.Set(t.Context(), indexEntry, []byte("no index")))
	killed(t, s)
	s, tracker, _, logged = opened(t, h, dimensions)
	require.Empty(t, spent(tracker, now))
	require.Equal(t, 1, logged.Len())
	require.NoError(t, s.Close(t.Context(), nil))
}

func TestOpen_SkipsMalformedSeriesKeys(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, tracker, _, _ := opened(t, h, dimensions)
	bad(tracker, "a", now)
	require.NoError(t, s.Close(t.Context(), nil))
	s, _, _, _ = opened(t, h, dimensions)
	saved, err := s.client.Get(t.Context(), entry(string(key("a"))))
	require.NoError(t, err)
	for _, malformed := range []string{"\x01a", "\x01a\x00\x00"} {
		require.NoError(t, s.client.Set(t.Context(), entry(malformed), saved))
	}
	require.NoError(t, s.client.Set(t.Context(), indexEntry, []byte(`{"dimensions":["model"],"keys":["AWE=","AWEAAA==","AWEA"]}`)))
	killed(t, s)
	s, tracker, _, logged := opened(t, h, dimensions)
	require.Equal(t, map[string]uint64{"a": 1}, spent(tracker, now))
	require.Equal(t, 1, logged.Len())
	require.NoError(t, s.Close(t.Context(), nil))
}

func TestOpen_OwnersDoNotShareBudgets(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, tracker, _, _ := opened(t, h, dimensions)
	bad(tracker, "a", now)
	require.NoError(t, s.Close(t.Context(), nil))
	for _, other := range []Owner{
		{Kind: component.KindConnector, ID: owner.ID},
		{Kind: component.KindExporter, ID: component.MustNewIDWithName("token_sli", "2")},
		{Kind: component.KindExporter, ID: owner.ID, Name: "logs"},
	} {
		tracker := newTracker()
		s, _, err := Open(t.Context(), h, &storagetest.FileStorage, other, tracker, dimensions, zap.NewNop())
		require.NoError(t, err)
		require.Empty(t, spent(tracker, now))
		require.NoError(t, s.Close(t.Context(), nil))
	}
}

func TestOpen_RejectsUnusableExtensions(t *testing.T) {
	h := newHost(t)
	missing, nop := component.MustNewIDWithName("file_storage", "x"), component.NewID(extensiontest.NopType)
	_, _, err := Open(t.Context(), h, &missing, owner, newTracker(), dimensions, zap.NewNop())
	require.ErrorContains(t, err, "`storage` is \"file_storage/x\", which is not an extension of this Collector; list it under `extensions` and under `service::extensions`")
	_, _, err = Open(t.Context(), h, &nop, owner, newTracker(), dimensions, zap.NewNop())
	require.ErrorContains(t, err, "which is not a storage extension")
}

func TestOpen_WithoutExtensionSavesNothing(t *testing.T) {
	s, _, err := Open(t.Context(), storagetest.Host{}, nil, owner, newTracker(), dimensions, zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, s)
	require.NoError(t, s.Save(t.Context(), nil))
	require.NoError(t, s.Close(t.Context(), nil))
}

// client records the operations of a real client. It can fail as on a full disk.
type client struct {
	storage.Client
	operations []*storage.Operation
	fails      bool
}

var errFull = errors.New("no space left on device")

func (c *client) Batch(ctx context.Context, operations ...*storage.Operation) error {
	if c.fails {
		return errFull
	}
	c.operations = operations
	return c.Client.Batch(ctx, operations...)
}
