// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// damaged returns a storage after these writes, one segment each: creation of a; creation of
// b; a change of a; creation of c; a change of a; a change of b.
func damaged(t *testing.T, damage func(values map[string][]byte)) *texts {
	t.Helper()
	m := storagetest.NewMemory()
	ts := opened(t, m)
	a := ts.mustCreate(t, "a")
	b := ts.mustCreate(t, "b")
	require.NoError(t, ts.add(a, "1"))
	ts.mustCreate(t, "c")
	require.NoError(t, ts.add(a, "2"))
	require.NoError(t, ts.add(b, "1"))
	ts.close(t)
	damage(m.Values)
	return opened(t, m)
}

func TestOpen_SkipsWhatIsDamaged(t *testing.T) {
	flip := func(key string, at int) func(map[string][]byte) {
		return func(values map[string][]byte) { values[key][at] ^= 0x40 }
	}
	for name, c := range map[string]struct {
		damage   func(map[string][]byte)
		want     []string
		lost     int
		failures int
		err      string
	}{
		"nothing":               {func(map[string][]byte) {}, []string{"a12", "b1", "c"}, 0, 0, ""},
		"content":               {flip(segmentKey(4), headerLength+3), []string{"a12", "b1"}, 0, 1, "segment 4 of open streams: damaged"},
		"a base, then a change": {flip(segmentKey(1), headerLength), []string{"b1", "c"}, 1, 1, "segment 1 of open streams: damaged"},
		"a change in between":   {flip(segmentKey(3), headerLength), []string{"b1", "c"}, 1, 1, "segment 3"},
		"a version":             {flip(segmentKey(4), 0), []string{"a12", "b1"}, 0, 1, "segment 4 of open streams: written by another build"},
		"truncated":             {func(values map[string][]byte) { values[segmentKey(4)] = values[segmentKey(4)][:3] }, []string{"a12", "b1"}, 0, 1, "segment 4"},
		"empty":                 {func(values map[string][]byte) { values[segmentKey(4)] = []byte{} }, []string{"a12", "b1"}, 0, 1, "segment 4"},
		"a missing segment":     {func(values map[string][]byte) { delete(values, segmentKey(3)) }, []string{"b1", "c"}, 1, 1, "a segment between 2 and 4 is missing"},
		"a missing change":      {func(values map[string][]byte) { delete(values, segmentKey(5)) }, []string{"a1", "b1", "c"}, 0, 1, "a segment between 4 and 6 is missing"},
		"swapped segments": {func(values map[string][]byte) {
			values[segmentKey(2)], values[segmentKey(4)] = values[segmentKey(4)], values[segmentKey(2)]
		}, []string{"a12"}, 1, 2, "segment 2 of open streams: damaged"},
		"a copied segment":              {func(values map[string][]byte) { values[segmentKey(4)] = values[segmentKey(1)] }, []string{"a12", "b1"}, 0, 1, "segment 4 of open streams: damaged"},
		"the index":                     {flip(indexKey, headerLength), nil, 0, 1, "the index of open streams: damaged"},
		"the index of an earlier build": {func(values map[string][]byte) { values[indexKey][0] = 2 }, nil, 0, 1, "the index of open streams: written by another build"},
		"a malformed record": {func(values map[string][]byte) {
			values[segmentKey(4)] = seal(segmentKey(4), 3, append(values[segmentKey(4)], 0x80))
		}, []string{"a12", "b1", "c"}, 0, 1, "malformed record"},
		"a record that the owner rejects": {func(values map[string][]byte) {
			b := appendRecord(make([]byte, headerLength), 1<<21, 1, base, []byte("bad"))
			values[segmentKey(4)] = seal(segmentKey(4), 3, b)
		}, []string{"a12", "b1"}, 1, 1, "bad"},
	} {
		t.Run(name, func(t *testing.T) {
			ts := damaged(t, c.damage)
			if c.want == nil {
				c.want = []string{}
			}
			require.Equal(t, c.want, ts.values())
			require.Equal(t, c.lost, ts.restored.Lost)
			require.Equal(t, c.failures, ts.restored.Failures)
			if c.err == "" {
				require.NoError(t, ts.restored.Err)
			} else {
				require.ErrorContains(t, ts.restored.Err, c.err)
			}
			// What is left is not mixed with what follows.
			ts.mustCreate(t, "new")
			m := ts.client.(*storagetest.Memory)
			ts.close(t)
			ts = opened(t, m)
			require.ElementsMatch(t, append(c.want, "new"), ts.values())
			ts.close(t)
		})
	}
}

func TestOpen_FailsWithoutStorage(t *testing.T) {
	m := storagetest.NewMemory()
	m.Fail = func(*storage.Operation) error { return errors.New("unreachable") }
	_, _, err := Open(context.Background(), m, &texts{})
	require.EqualError(t, err, "unreachable")
}

// Whatever a segment contains, opening it does not panic, and it can be written to.
func FuzzOpen(f *testing.F) {
	record := appendRecord(nil, 1, 1, base, []byte("a"))
	f.Add(record, []byte{})
	f.Add(append(record, appendRecord(nil, 1, 2, change, []byte("b"))...), appendRecord(nil, 1, 3, finish, nil))
	f.Add([]byte{0xff}, []byte{1, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		m := storagetest.NewMemory()
		m.Values[indexKey] = index{1, 4, 100}.encode()
		m.Values[segmentKey(1)] = seal(segmentKey(1), 0, append(make([]byte, headerLength), first...))
		m.Values[segmentKey(2)] = seal(segmentKey(2), 1, append(make([]byte, headerLength), second...))
		m.Values[segmentKey(3)] = second
		ts := opened(t, m)
		before := ts.values()
		ts.mustCreate(t, "new")
		ts.close(t)
		ts = opened(t, m)
		require.ElementsMatch(t, append(before, "new"), ts.values())
		ts.close(t)
	})
}

func FuzzIndex(f *testing.F) {
	f.Add(index{1, 2, 3}.encode()[headerLength:])
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := decodeIndex(seal(indexKey, 0, append(make([]byte, headerLength), b...)))
		if err != nil {
			return
		}
		again, err := decodeIndex(i.encode())
		require.NoError(t, err)
		require.Equal(t, i, again)
	})
}
