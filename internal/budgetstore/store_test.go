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

	"github.com/tokenpulse/tokenpulse/internal/budgetstore/budgetstoretest"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	owner      = Owner{Kind: component.KindExporter, ID: component.MustNewID("token_sli")}
	dimensions = []string{"model"}
)

// newHost is a Collector with a file_storage, and an extension that stores nothing.
func newHost(t *testing.T) budgetstoretest.Host {
	t.Helper()
	host := budgetstoretest.NewHost(t, 0)
	other, err := extensiontest.NewNopFactory().Create(t.Context(), extensiontest.NewNopSettings(extensiontest.NopType), nil)
	require.NoError(t, err)
	host[component.NewID(extensiontest.NopType)] = other
	return host
}

func newEngine(dimensions []string) *series.Engine {
	config := series.NewDefaultSeriesConfig()
	config.Dimensions = dimensions
	return series.NewEngine(series.Options{
		Series:     config,
		Objectives: []series.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}},
	})
}

func bad(e *series.Engine, model string, now time.Time) {
	r := &series.Request{Dimensions: []string{model}, Arrival: now}
	r.Verdicts.Add("tpot", series.Bad)
	e.Record(r)
}

// spent returns how many bad requests the budget of each model has seen.
func spent(e *series.Engine, now time.Time) map[string]uint64 {
	all := map[string]uint64{}
	e.Collect(now, func(s *series.Snapshot) {
		for _, o := range s.SLOs {
			if o.Name == "tpot" {
				all[s.Dimensions[0]] = o.Recent.Budget.Bad
			}
		}
	})
	return all
}

// opened returns a store, an engine that goes on, and what was logged.
func opened(t *testing.T, h budgetstoretest.Host, dimensions []string) (*Store, *series.Engine, []byte, *observer.ObservedLogs) {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	e := newEngine(dimensions)
	s, notes, err := Open(t.Context(), h, &budgetstoretest.FileStorage, owner, e, dimensions, zap.New(core))
	require.NoError(t, err)
	return s, e, notes, logged
}

// killed closes the storage without a last save, as if the process were gone.
func killed(t *testing.T, s *Store) {
	t.Helper()
	require.NoError(t, s.client.Close(t.Context()))
}

func TestBudgetsSurviveRestarts(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, e, notes, _ := opened(t, h, dimensions)
	require.Nil(t, notes, "there was nothing")
	bad(e, "a", now)
	bad(e, "a", now)
	bad(e, "b", now)
	require.NoError(t, s.Save(t.Context(), []byte("noted")))
	bad(e, "a", now) // after the last save
	killed(t, s)

	s, e, notes, logged := opened(t, h, dimensions)
	require.Equal(t, "noted", string(notes))
	require.Equal(t, map[string]uint64{"a": 2, "b": 1}, spent(e, now))
	bad(e, "b", now)
	bad(e, "c", now)
	require.NoError(t, s.Save(t.Context(), nil))
	require.NoError(t, s.Save(t.Context(), nil))
	bad(e, "c", now)
	require.NoError(t, s.Close(t.Context(), nil), "saves what has changed since")

	s, e, _, _ = opened(t, h, dimensions)
	require.Equal(t, map[string]uint64{"a": 2, "b": 2, "c": 2}, spent(e, now))
	require.NoError(t, s.Close(t.Context(), nil))
	require.Zero(t, logged.Len())
}

// Each save writes what has changed, and no more.
func TestSaveWritesWhatChanged(t *testing.T) {
	h := newHost(t)
	s, e, _, _ := opened(t, h, dimensions)
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
		bad(e, model, now)
		written := writes()
		require.Len(t, written, 2)
		require.Equal(t, indexEntry, written[1])
		keyOf[model] = written[0]
	}
	bad(e, "b", now)
	require.Equal(t, []string{keyOf["b"]}, writes())
	require.Empty(t, writes())
	notes = []byte("noted")
	require.Equal(t, []string{notesEntry}, writes())
	require.Empty(t, writes())

	counting.fails = true
	bad(e, "a", now)
	require.ErrorIs(t, s.Save(t.Context(), nil), errFull)
	counting.fails = false
	require.Equal(t, []string{keyOf["a"]}, writes(), "what was refused goes with the next save")

	require.NoError(t, s.Close(t.Context(), nil))
}

// Budgets whose windows are over leave the storage.
func TestBudgetsThatAreOverAreDeleted(t *testing.T) {
	h := newHost(t)
	s, e, _, _ := opened(t, h, dimensions)
	now := time.Now()
	bad(e, "a", now)
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
	e.Expire(now.Add(2 * time.Hour)) // quiet: the budget is remembered
	require.NoError(t, s.Save(t.Context(), nil))
	require.NotNil(t, stored())
	e.Expire(now.Add(721 * time.Hour))
	require.NoError(t, s.Save(t.Context(), nil))
	require.Nil(t, stored())
	require.NoError(t, s.Close(t.Context(), nil))
}

// Series of other dimensions are other series. Nothing of the old ones stays.
func TestOtherDimensionsBeginAnew(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, e, _, _ := opened(t, h, dimensions)
	bad(e, "a", now)
	require.NoError(t, s.Close(t.Context(), nil))

	s, e, _, logged := opened(t, h, []string{"service"})
	require.Empty(t, spent(e, now))
	require.Equal(t, 1, logged.FilterMessage("Some error budgets could not be restored, and begin anew").Len())
	require.NoError(t, s.Close(t.Context(), nil))

	s, e, _, logged = opened(t, h, dimensions)
	require.Empty(t, spent(e, now))
	require.Equal(t, 1, logged.Len(), "back again: other dimensions once more")
	require.NoError(t, s.Close(t.Context(), nil))
}

func TestWhatCannotBeReadLeavesTheRest(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, e, _, _ := opened(t, h, dimensions)
	bad(e, "a", now)
	bad(e, "b", now)
	require.NoError(t, s.Save(t.Context(), nil))
	for key := range s.stored {
		require.NoError(t, s.client.Set(t.Context(), entry(key), []byte("no budget")))
		break
	}
	killed(t, s)
	s, e, _, logged := opened(t, h, dimensions)
	require.Len(t, spent(e, now), 1)
	require.Equal(t, 1, logged.Len())
	require.NoError(t, s.client.Set(t.Context(), indexEntry, []byte("no index")))
	killed(t, s)
	s, e, _, logged = opened(t, h, dimensions)
	require.Empty(t, spent(e, now))
	require.Equal(t, 1, logged.Len())
	require.NoError(t, s.Close(t.Context(), nil))
}

// Two components, and two signals of one, do not share budgets.
func TestOwnersAreApart(t *testing.T) {
	h := newHost(t)
	now := time.Now()
	s, e, _, _ := opened(t, h, dimensions)
	bad(e, "a", now)
	require.NoError(t, s.Close(t.Context(), nil))
	for _, other := range []Owner{
		{Kind: component.KindConnector, ID: owner.ID},
		{Kind: component.KindExporter, ID: component.MustNewIDWithName("token_sli", "2")},
		{Kind: component.KindExporter, ID: owner.ID, Name: "logs"},
	} {
		e := newEngine(dimensions)
		s, _, err := Open(t.Context(), h, &budgetstoretest.FileStorage, other, e, dimensions, zap.NewNop())
		require.NoError(t, err)
		require.Empty(t, spent(e, now))
		require.NoError(t, s.Close(t.Context(), nil))
	}
}

func TestExtensionsThatCannotBeUsed(t *testing.T) {
	h := newHost(t)
	missing, nop := component.MustNewIDWithName("file_storage", "x"), component.NewID(extensiontest.NopType)
	_, _, err := Open(t.Context(), h, &missing, owner, newEngine(dimensions), dimensions, zap.NewNop())
	require.ErrorContains(t, err, "`storage` is \"file_storage/x\", which is no extension of this Collector: list it under `extensions` and under `service::extensions`")
	_, _, err = Open(t.Context(), h, &nop, owner, newEngine(dimensions), dimensions, zap.NewNop())
	require.ErrorContains(t, err, "which is an extension that stores nothing")
}

func TestWithoutAnExtensionNothingIsKept(t *testing.T) {
	s, _, err := Open(t.Context(), budgetstoretest.Host{}, nil, owner, newEngine(dimensions), dimensions, zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, s)
	require.NoError(t, s.Save(t.Context(), nil))
	require.NoError(t, s.Close(t.Context(), nil))
}

// client counts what a real client is told, and can fail as a full disk does.
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
