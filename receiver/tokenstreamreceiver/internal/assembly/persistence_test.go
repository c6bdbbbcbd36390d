// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// withJournal returns a store that has restored the streams of a storage.
func withJournal(t testing.TB, limits Limits, client storage.Client) (*Store, *Restored) {
	t.Helper()
	s, _ := newStore(limits)
	restored, err := s.OpenJournal(context.Background(), client, func(error) {})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.CloseJournal(context.Background())) })
	return s, restored
}

// copyOf returns what a storage holds when the process dies.
func copyOf(client *storagetest.Memory) *storagetest.Memory {
	died := storagetest.NewMemory()
	died.Values = client.Stored()
	return died
}

// randomEvents returns a function that adds the same random events to the batches of
// several stores.
func randomEvents(r *rand.Rand, id string) script {
	type add func(part *Part) error
	var events []add
	flavor := len(id) % 3 // of the stream: chunks without numbers, with numbers, or any
	for range 1 + r.IntN(4) {
		at, n := t0+r.Int64N(1e12), r.IntN(6)
		channel := timeline.Channel(r.IntN(4))
		start := Start{UnixNano: t0 + int64(len(id)), Vantage: timeline.VantageClient, TraceID: [16]byte{byte(len(id) % 2)}, SpanID: [8]byte{byte(len(id) % 3)}}
		attributes := fmt.Appendf(nil, "attributes %d", r.IntN(4))
		switch r.IntN(8) {
		case 0:
			resource := fmt.Appendf(nil, "resource %d", r.IntN(3))
			events = append(events, func(part *Part) error { return part.AddStart(start, attributes, resource) })
		case 1:
			events = append(events, func(part *Part) error { return part.AddScheduled(at) })
		default:
			for i := range n {
				k := Chunk{UnixNano: at + int64(i)*12_345_678, Tokens: uint32(r.IntN(4)), Channel: channel}
				if flavor == 1 || flavor == 2 && r.IntN(2) == 0 {
					k.Numbered, k.Seq = true, uint64(r.IntN(50))
					if r.IntN(2) == 0 { // in order, with gaps
						k.UnixNano, k.Seq = t0+1e9*int64(part(id)), uint64(part(id))*2
					}
				} else if r.IntN(2) == 0 { // in order
					k.UnixNano = t0 + 1e9*int64(part(id))
				}
				events = append(events, func(part *Part) error { return part.AddChunk(k) })
			}
		}
	}
	return func(_ testing.TB, part *Part) {
		for _, event := range events {
			_ = event(part)
		}
	}
}

var parts = map[string]int{}

// part counts the calls for an ID.
func part(id string) int {
	parts[id]++
	return parts[id]
}

// content is what a finished stream becomes a span of.
func content(f Finished) string {
	line := f.Chunks.Timeline()
	return fmt.Sprintf("%s %+v %d %q %q %d %d %d %x", f.ID, f.Start, f.Scheduled, f.Attributes, f.Resource, f.Dropped(), f.Duplicates(), f.EndUnixNano(),
		line.AppendBinary(nil, f.Start.UnixNano))
}

// A store that dies and is restored again and again, with a storage that fails sometimes,
// yields the same streams as one without a journal.
func TestJournal_RestoredStreamsEqualThoseThatNeverDied(t *testing.T) {
	synctest.Test(t, testRestoredStreams) // after a failure, the journal refuses changes for a second
}

func testRestoredStreams(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 40
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		clear(parts)
		plain, _ := newStore(limits)
		client := storagetest.NewMemory()
		s, _ := withJournal(t, limits, client)
		finished := map[string]string{}
		for i := range 200 {
			id := strings.Repeat("i", 1+r.IntN(9))
			scripts := []script{randomEvents(r, id)}
			if r.IntN(12) == 0 {
				scripts = append(scripts, ended)
			}
			fails := r.IntN(10) == 0
			if fails {
				client.FailWith(errors.New("no space left on device"))
			}
			tx, err := s.Begin(t.Context(), batchOf(t, s, id, scripts...))
			if err == nil {
				err = tx.Commit()
			}
			client.FailWith(nil)
			time.Sleep(time.Second)
			if err != nil {
				var failed *StorageError
				require.ErrorAs(t, err, &failed)
			} else {
				same := apply(t, plain, batchOf(t, plain, id, scripts...))
				require.Equal(t, same.Units, tx.Units)
				require.Len(t, tx.Finished, len(same.Finished))
				for i := range same.Finished {
					finished[id] = content(same.Finished[i])
					require.Equal(t, finished[id], content(tx.Finished[i]), "seed %d", seed)
				}
			}
			if r.IntN(15) == 0 {
				// Ends that the storage failed to take are stored with the next change.
				next := fmt.Sprintf("next %d", i)
				apply(t, plain, batchOf(t, plain, next, started))
				apply(t, s, batchOf(t, s, next, started))
				var restored *Restored
				client = copyOf(client)
				s, restored = withJournal(t, limits, client)
				if r.IntN(2) == 0 {
					s.memory.Add(-1 << 40) // compacts all the time
				}
				require.NoError(t, restored.Err)
				require.Zero(t, restored.Damaged+restored.Full)
			}
			require.Equal(t, plain.Streams(), s.Streams(), "seed %d", seed)
		}
		require.NotEmpty(t, finished)
		want, got := map[string]string{}, map[string]string{}
		for _, f := range plain.Cut(minute, 0, 1000).Finished {
			want[f.ID] = content(f)
		}
		for _, f := range s.Cut(minute, 0, 1000).Finished {
			got[f.ID] = content(f)
		}
		require.NotEmpty(t, want)
		require.Equal(t, want, got, "seed %d", seed)
	}
}

func TestJournal_StreamsThatDoNotFitAreCounted(t *testing.T) {
	client := storagetest.NewMemory()
	s, _ := withJournal(t, roomy, client)
	for i := range 10 {
		apply(t, s, batchOf(t, s, fmt.Sprint("s", i), started, chunks(1, 2, 3)))
	}
	fewer := roomy
	fewer.MaxStreams = 4
	client = copyOf(client)
	s, restored := withJournal(t, fewer, client)
	require.Equal(t, Restored{Streams: 4, Events: 4, Full: 6}, *restored)
	require.Equal(t, int64(4), s.Streams())
	apply(t, s, batchOf(t, s, "s0", chunks(4))) // the next write forgets the others
	_, restored = withJournal(t, roomy, copyOf(client))
	require.Equal(t, Restored{Streams: 4, Events: 5}, *restored)

	little := roomy
	little.MaxMemory = 2000
	s, restored = withJournal(t, little, copyOf(client))
	require.Positive(t, restored.Streams)
	require.Positive(t, restored.Full)
	require.LessOrEqual(t, s.Memory(), little.MaxMemory)
}

func TestJournal_StreamsShareAResource(t *testing.T) {
	large := []byte(strings.Repeat("resource", 5000))
	client := storagetest.NewMemory()
	s, _ := withJournal(t, roomy, client)
	batch := s.NewBatch()
	for i := range 100 {
		addPart(t, batch, fmt.Sprint("s", i), startedWith(large))
	}
	apply(t, s, batch)
	held := s.Memory()
	require.Less(t, client.Size(), 2*len(large), "stored once")
	client = copyOf(client)
	s, restored := withJournal(t, roomy, client)
	require.Equal(t, 100, restored.Streams)
	require.InEpsilon(t, held, s.Memory(), 0.1, "counted once")
	for i := range 100 {
		tx := apply(t, s, batchOf(t, s, fmt.Sprint("s", i), ended))
		require.Equal(t, string(large), string(tx.Finished[0].Resource))
	}
	require.Zero(t, s.Memory())
	apply(t, s, batchOf(t, s, "last", started))
	s, restored = withJournal(t, roomy, copyOf(client))
	require.Equal(t, Restored{Streams: 1, Events: 1}, *restored)
	require.Empty(t, s.resources.shared)
}

// After a failed write, a batch with changes is refused before its finished streams are delivered.
func TestJournal_RefusesChangesWhileTheStorageFails(t *testing.T) {
	client := storagetest.NewMemory()
	s, _ := withJournal(t, roomy, client)
	client.FailWith(storage.ErrStorageFull)
	require.ErrorIs(t, begin(t, s, batchOf(t, s, "a", started)).Commit(), storage.ErrStorageFull)
	_, err := s.Begin(t.Context(), batchOf(t, s, "a", started))
	require.ErrorIs(t, err, storage.ErrStorageFull)
	require.Zero(t, s.Streams())
	before := client.Batches
	apply(t, s, batchOf(t, s, "whole", started, chunks(1), ended))
	require.Equal(t, before, client.Batches)
}

// Streams change, end and expire while the journal rewrites all of them all the time.
func TestJournal_RewritesStreamsThatChange(t *testing.T) {
	client := storagetest.NewMemory()
	s, _ := withJournal(t, roomy, client)
	s.memory.Add(-1 << 40) // compacts all the time
	var senders sync.WaitGroup
	const rounds = 300
	for sender := range 8 {
		senders.Go(func() {
			for i := range rounds {
				id := fmt.Sprint("s", sender)
				apply(t, s, batchOf(t, s, id, started, chunks(i)))
				other := fmt.Sprint("o", sender)
				apply(t, s, batchOf(t, s, other, started, chunks(2, 1)))
				apply(t, s, batchOf(t, s, other, ended))
				if i%10 == 0 {
					tx := s.Expire(Timeouts{time.Hour, time.Hour}, 10)
					tx.Rollback()
				}
			}
		})
	}
	senders.Wait()
	s, restored := withJournal(t, roomy, copyOf(client))
	require.Equal(t, Restored{Streams: 8, Events: 2400}, *restored)
	for sender := range 8 {
		f := apply(t, s, batchOf(t, s, fmt.Sprint("s", sender), ended)).Finished[0]
		require.Equal(t, rounds, f.Chunks.Len())
		require.Equal(t, rounds-1, f.Duplicates(), "repeated starts")
	}
}

// Whatever was stored, decoding it does not panic, and what it yields can be stored.
func FuzzStored(f *testing.F) {
	s, _ := newStore(roomy)
	for i, scripts := range [][]script{
		{started, chunks(1, 2, 3)},
		{chunks(3, 2, 1)},
		{started, numbered(1, 10, 2, 20, 5, 30)},
		{started, numbered(2, 20, 1, 10)},
	} {
		batch := batchOf(f, s, "s", scripts...)
		f.Add(appendStream(nil, &batch.parts[0].Stream, nil, httpguard.Client{Subject: strconv.Itoa(i)}), appendEvents(nil, &batch.parts[0].Stream, nil))
	}
	f.Fuzz(func(t *testing.T, base, change []byte) {
		l := &loader{limits: &roomy}
		owner, err := l.Base(base)
		if err != nil {
			return
		}
		if l.Change(owner, change) != nil {
			return
		}
		stream, ok := owner.(*loading)
		if !ok {
			return
		}
		again, err := l.Base(appendStream(nil, &stream.Stream, nil, stream.client))
		require.NoError(t, err)
		require.Equal(t, content(Finished{Stream: stream.fork()}), content(Finished{Stream: again.(*loading).fork()}))
	})
}

// Resources of streams that have ended do not stay in the storage.
func TestJournal_ForgetsResources(t *testing.T) {
	client := storagetest.NewMemory()
	s, _ := withJournal(t, roomy, client)
	apply(t, s, batchOf(t, s, "waiting", started))
	for i := range 500 {
		resource := append(fmt.Append(nil, i), make([]byte, 40_000)...)
		apply(t, s, batchOf(t, s, "s", startedWith(resource)))
		apply(t, s, batchOf(t, s, "s", ended))
	}
	require.Less(t, client.Size(), 6<<20, "20 MB were written")
	_, restored := withJournal(t, roomy, copyOf(client))
	require.Equal(t, Restored{Streams: 1, Events: 1}, *restored)
}
