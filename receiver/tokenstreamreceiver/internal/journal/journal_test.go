// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text is an entry for tests: a text that grows.
type text struct {
	entry   *Entry
	mu      sync.Mutex
	value   string
	writing bool
	gone    bool
}

// texts are the contents of a journal, and how a test changes them.
type texts struct {
	*Journal
	mu       sync.Mutex
	open     map[*text]bool
	failures int
	restored *Restored
}

func (ts *texts) Base(content []byte) (any, error) {
	if strings.HasPrefix(string(content), "bad") {
		return nil, errors.New("bad")
	}
	return &text{value: string(content)}, nil
}

func (ts *texts) Change(owner any, content []byte) error {
	if string(content) == "bad" {
		return errors.New("bad")
	}
	owner.(*text).value += string(content)
	return nil
}

func (ts *texts) Rewrite(owner any, write func([]byte)) {
	t := owner.(*text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.writing && !t.gone {
		write([]byte(t.value))
	}
}

// perEntry is what an entry takes in memory besides its text.
const perEntry = 100

func (ts *texts) Size() (bytes int64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for t := range ts.open {
		t.mu.Lock()
		bytes += int64(len(t.value)) + perEntry
		t.mu.Unlock()
	}
	return bytes
}

func opened(t testing.TB, client storage.Client) *texts {
	t.Helper()
	ts := &texts{open: map[*text]bool{}}
	j, restored, err := Open(context.Background(), client, ts)
	require.NoError(t, err)
	for _, e := range restored.Entries {
		owner := e.Owner().(*text)
		owner.entry = e
		ts.open[owner] = true
	}
	ts.Journal, ts.restored = j, restored
	j.Start(ts, func(error) { ts.failures++ })
	return ts
}

func (ts *texts) close(t testing.TB) {
	t.Helper()
	require.NoError(t, ts.Close(context.Background()))
}

// requireRestored closes the journal, and expects the same values in the next one.
func (ts *texts) requireRestored(t testing.TB, client storage.Client) {
	t.Helper()
	want := ts.values()
	ts.close(t)
	next := opened(t, client)
	require.Equal(t, want, next.values())
	next.close(t)
}

// values returns the values of the open texts, sorted.
func (ts *texts) values() []string {
	all := []string{}
	for t := range ts.open {
		all = append(all, t.value)
	}
	slices.Sort(all)
	return all
}

// latest returns the last segment that has a base of an open text. The writer may be at work.
func (ts *texts) latest() (segment uint64) {
	for t := range ts.open {
		segment = max(segment, t.entry.base.Load())
	}
	return segment
}

func (ts *texts) create(value string) (*text, error) {
	created := &text{value: value, writing: true}
	created.entry = ts.NewEntry(created)
	var changes Changes
	changes.Base(created.entry, append(changes.Content(), value...))
	if err := ts.Write(&changes, false); err != nil {
		return nil, err
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.open[created] = true
	created.mu.Lock()
	defer created.mu.Unlock()
	created.writing = false
	return created, nil
}

// mustCreate creates a text, or fails the test.
func (ts *texts) mustCreate(t testing.TB, value string) *text {
	t.Helper()
	created, err := ts.create(value)
	require.NoError(t, err)
	return created
}

func (ts *texts) add(t *text, more string) error {
	t.mu.Lock()
	t.writing = true
	t.mu.Unlock()
	var changes Changes
	if ts.IsStale(t.entry) {
		changes.Base(t.entry, append(changes.Content(), t.value...))
	}
	changes.Change(t.entry, append(changes.Content(), more...))
	err := ts.Write(&changes, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writing = false
	if err == nil {
		t.value += more
	}
	return err
}

func (ts *texts) finish(t *text) error {
	t.mu.Lock()
	t.gone = true
	t.mu.Unlock()
	ts.mu.Lock()
	delete(ts.open, t)
	ts.mu.Unlock()
	var changes Changes
	changes.Finish(t.entry)
	return ts.Write(&changes, true)
}

// fileStorage returns a function that opens the same file_storage each time.
func fileStorage(t testing.TB) func() storage.Client {
	host := storagetest.NewHost(t)
	return func() storage.Client {
		client, err := host[storagetest.FileStorage].(storage.Extension).GetClient(context.Background(), component.KindReceiver, component.MustNewID("token_stream"), "")
		require.NoError(t, err)
		return client
	}
}

func TestJournal_EntriesSurviveRestartsInFileStorage(t *testing.T) {
	open := fileStorage(t)
	ts := opened(t, open())
	require.Empty(t, ts.values())
	a := ts.mustCreate(t, "a")
	b := ts.mustCreate(t, "b")
	require.NoError(t, ts.add(a, "1"))
	require.NoError(t, ts.add(a, "2"))
	require.NoError(t, ts.finish(b))
	require.NoError(t, ts.client.Close(context.Background())) // as if killed
	ts.close(t)

	ts = opened(t, open())
	require.Equal(t, []string{"a12"}, ts.values())
	require.NoError(t, ts.add(ts.restored.Entries[0].Owner().(*text), "3"))
	ts.mustCreate(t, "c")
	ts.close(t)
	ts.close(t)
	_, err := ts.create("d")
	require.ErrorIs(t, err, ErrClosed)

	ts = opened(t, open())
	require.Equal(t, []string{"a123", "c"}, ts.values())
	require.NoError(t, ts.restored.Err)
	ts.close(t)
}

func TestJournal_WritesConcurrentChangesTogether(t *testing.T) {
	m := storagetest.NewMemory()
	ts := opened(t, m)
	blocked, release := make(chan struct{}), make(chan struct{})
	m.Fail = func(*storage.Operation) error {
		m.Fail = nil
		close(blocked)
		<-release
		return nil
	}
	var all sync.WaitGroup
	create := func(i int) {
		all.Go(func() {
			ts.mustCreate(t, strconv.Itoa(i))
		})
	}
	create(0)
	<-blocked
	for i := range 100 {
		create(i + 1)
	}
	require.Eventually(t, func() bool {
		ts.Journal.mu.Lock()
		defer ts.Journal.mu.Unlock()
		return ts.pending != nil && len(ts.pending.changes) == 100
	}, 10*time.Second, time.Millisecond)
	before := m.Batches
	close(release)
	all.Wait()
	require.Equal(t, before+1, m.Batches, "a hundred creations are one batch")
	require.Len(t, ts.values(), 101)
	ts.requireRestored(t, m)
}

func TestJournal_FailedWriteStoresNothing(t *testing.T) {
	m := storagetest.NewMemory()
	ts := opened(t, m)
	a := ts.mustCreate(t, "a")
	b := ts.mustCreate(t, "b")
	require.NoError(t, ts.Ready())

	down := errors.New("no space left on device")
	m.Fail = func(o *storage.Operation) error {
		if o.Type == storage.Set && strings.HasPrefix(o.Key, "segment") {
			m.Values[o.Key] = slices.Clone(o.Value) // was written after all
			return down
		}
		return nil
	}
	require.ErrorIs(t, ts.add(a, "1"), down)
	_, err := ts.create("c")
	require.ErrorIs(t, err, down)
	require.ErrorIs(t, ts.Ready(), down)
	require.ErrorIs(t, ts.finish(b), down)
	require.Equal(t, 3, ts.failures)
	m.Fail = nil
	require.NoError(t, ts.add(a, "2"))
	require.NoError(t, ts.Ready())
	ts.close(t)

	ts = opened(t, m)
	require.Equal(t, []string{"a2"}, ts.values(), "b is finished with the write after the failure")
	require.NoError(t, ts.restored.Err)
	require.Zero(t, ts.restored.Lost)
	ts.close(t)
}

func TestClose_DoesNotWaitForBlockedStorage(t *testing.T) {
	m := storagetest.NewMemory()
	ts := opened(t, m)
	blocked, release := make(chan struct{}), make(chan struct{})
	m.Fail = func(*storage.Operation) error {
		close(blocked)
		<-release
		return nil
	}
	created := make(chan error, 1)
	go func() {
		_, err := ts.create("a")
		created <- err
	}()
	<-blocked
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, ts.Close(ctx), context.DeadlineExceeded)
	m.Fail = nil
	close(release)
	require.NoError(t, <-created)
	<-ts.done
}

// A process that dies between any two operations of the storage loses nothing that was
// acknowledged, and has at most the change in progress in addition.
func TestJournal_SurvivesDeathAtAnyOperation(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := storagetest.NewMemory()
		acknowledged := map[string]bool{}
		var inFlight [2]string // before and after
		for range 4 {
			ts := opened(t, m)
			require.NoError(t, ts.restored.Err, "seed %d", seed)
			require.Zero(t, ts.restored.Lost, "seed %d", seed)
			got := map[string]bool{}
			for _, value := range ts.values() {
				got[value] = true
			}
			applied := maps.Clone(acknowledged)
			delete(applied, inFlight[0])
			if inFlight[1] != "" {
				applied[inFlight[1]] = true
			}
			require.True(t, maps.Equal(acknowledged, got) || maps.Equal(applied, got), "seed %d: got %v, want %v or %v", seed, got, acknowledged, applied)
			acknowledged, inFlight = got, [2]string{}

			dead := errors.New("dead")
			left := r.IntN(60)
			m.Fail = func(*storage.Operation) error {
				if left == 0 {
					return dead
				}
				left--
				return nil
			}
			var err error
			for n := 0; err == nil; n++ {
				all := slices.SortedFunc(maps.Keys(ts.open), func(a, b *text) int { return strings.Compare(a.value, b.value) })
				if r.IntN(8) == 0 {
					ts.threshold.Store(ts.latest() + 1) // compact
				}
				switch do := r.IntN(4); {
				case do == 0 || len(all) == 0:
					value := fmt.Sprintf("s%d.%d.", r.Uint64(), n)
					if _, err = ts.create(value); err == nil {
						acknowledged[value] = true
					} else {
						inFlight = [2]string{"", value}
					}
				case do == 1:
					which := all[r.IntN(len(all))]
					if err = ts.finish(which); err == nil {
						delete(acknowledged, which.value)
					} else {
						inFlight = [2]string{which.value, ""}
					}
				default:
					which, before := all[r.IntN(len(all))], ""
					before = which.value
					if err = ts.add(which, "+"); err == nil {
						delete(acknowledged, before)
						acknowledged[before+"+"] = true
					} else {
						inFlight = [2]string{before, before + "+"}
					}
				}
			}
			ts.close(t)
			m.Fail = nil
		}
	}
}

// Old entries do not keep the segments of all that followed: the stored bytes stay within the
// documented multiple of the memory.
func TestJournal_StoredBytesAreBounded(t *testing.T) {
	m := storagetest.NewMemory()
	ts := opened(t, m)
	r := rand.New(rand.NewPCG(1, 2))
	var old, short []*text
	for i := range 500 {
		created := ts.mustCreate(t, fmt.Sprintf("old %d %s", i, strings.Repeat("x", 2000)))
		old = append(old, created)
	}
	written, most := 0, 0.0
	for i := range 8000 {
		created := ts.mustCreate(t, strings.Repeat("y", 5000))
		short = append(short, created)
		if len(short) > 50 {
			require.NoError(t, ts.finish(short[0]))
			short = short[1:]
		}
		if i%10 == 0 { // some old entries change, the others never do
			require.NoError(t, ts.add(old[r.IntN(100)], "+"))
		}
		written += 5000
		held := ts.Size()
		require.LessOrEqual(t, int64(m.Size()), 4*held+compactSlack+1<<20)
		most = max(most, float64(m.Size())/float64(held))
	}
	t.Logf("%d bytes written, at most %.1f times the memory stored, %d segments", written, most, len(ts.segments))
	require.Greater(t, written, 4*int(4*ts.Size()+compactSlack), "the bound was never reached")
	ts.requireRestored(t, m)
	require.LessOrEqual(t, int64(m.Size()), ts.Stored())
}

// The index covers all segments, however many are written.
func TestJournal_ReadsMoreSegmentsThanTheIndexReserves(t *testing.T) {
	m := storagetest.NewMemory()
	ts := opened(t, m)
	a := ts.mustCreate(t, "a")
	for range 2*reservedSegments + 10 {
		require.NoError(t, ts.add(a, "+"))
	}
	ts.close(t)
	ts = opened(t, m)
	require.Equal(t, []string{"a" + strings.Repeat("+", 2*reservedSegments+10)}, ts.values())
	ts.close(t)
}
