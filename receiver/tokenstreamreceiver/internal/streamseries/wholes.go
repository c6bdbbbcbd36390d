// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamseries

import (
	"hash/maphash"
	"iter"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/identity"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// Wholes are the streams of a request that go from its message to their series: neither
// into the batch and its store, nor into a span. The message must not change until they are
// recorded. The zero value holds none, and cannot take any. Wholes are not safe for concurrent use.
//
// A stream becomes a part of the batch after all if it is not alone: if the request has other
// events of it, or if it is open.
type Wholes struct {
	recorder *Recorder
	spans    *streamspan.Selection // of the streams that become spans; nil if none do
	batch    *assembly.Batch
	reject   wire.Reject
	decoder  wire.TokenStreams // of streams that become parts
	seed     maphash.Seed

	all   []wholeStream
	used  int
	count int            // without those that became parts
	byID  map[uint64]int // index in all, by the hash of the ID
	err   error

	identities identity.Finder[streamIdentity]
	ids        streamspan.WholeIDs
}

// wholeStream is a stream with its identity, which is nil once it is a part of the batch.
type wholeStream struct {
	assembly.Whole
	id       *streamIdentity
	position int // in the request
}

// keepWholes is the number of streams whose memory is kept for the next request.
const keepWholes = 4096

// NewWholes returns Wholes beside a batch of the recorder's store. They leave streams to the batch
// that the selection may make spans; a nil selection makes none. reject is called for each rejected
// event of a stream that becomes a part of the batch.
func NewWholes(recorder *Recorder, spans *streamspan.Selection, batch *assembly.Batch, reject wire.Reject) *Wholes {
	return &Wholes{
		recorder: recorder, spans: spans, batch: batch, reject: reject, seed: maphash.MakeSeed(), identities: recorder.Identities.NewFinder(),
	}
}

// Len returns the number of streams, without those that became parts of the batch.
func (w *Wholes) Len() int { return w.count }

// Err returns the error of a stream that could not become a part of the batch. The request must then
// be refused.
func (w *Wholes) Err() error { return w.err }

// Outcomes returns the outcome of each stream.
func (w *Wholes) Outcomes() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range w.all[:w.used] {
			if w.all[i].id != nil && !yield(w.all[i].End.Outcome()) {
				return
			}
		}
	}
}

// Reset removes all streams. The next ones may be of another message.
func (w *Wholes) Reset() {
	if len(w.all) > keepWholes {
		w.all, w.byID = nil, nil
	}
	clear(w.all[:min(w.used+1, len(w.all))]) // they refer to the message
	clear(w.byID)
	w.used, w.count, w.err, w.ids = 0, 0, nil, streamspan.WholeIDs{}
	w.identities.Reset()
}

// Take takes an encoded token_stream, or returns false to leave it to the batch. resource is its
// encoded resource.
func (w *Wholes) Take(position int, message, resource []byte) bool {
	if w.used == len(w.all) {
		w.all = append(w.all, wholeStream{})
	}
	s := &w.all[w.used]
	s.position = position
	if !wire.ReadWhole(message, resource, &s.Whole) || !w.batch.Accepts(&s.Whole) {
		if w.used > 0 {
			w.leave(maphash.Bytes(w.seed, wire.StreamID(message)))
		}
		return false
	}
	hash := maphash.Bytes(w.seed, s.ID)
	if w.batch.Has(s.ID) || w.leave(hash) {
		return false
	}
	s.id = w.identities.Find(byte(s.Start.Vantage), resource, wire.InEvent, s.Attributes, s.EndAttributes)
	if s.id == nil || s.id.onSpan || w.mayBecomeSpan(s) || !w.batch.GrowBy(1) {
		return false
	}
	if w.byID == nil {
		w.byID = map[uint64]int{}
	}
	w.byID[hash] = w.used
	w.used++
	w.count++
	return true
}

// mayBecomeSpan reports whether a stream is in the share of the spans, or may breach an SLO.
func (w *Wholes) mayBecomeSpan(s *wholeStream) bool {
	if w.spans == nil {
		return false
	}
	if w.spans.SelectsBreaches() && s.id.rules.Any() {
		return true
	}
	return w.spans.InShare(w.ids.Of(&s.Whole))
}

// leave makes the whole stream whose ID has a hash a part of the batch. It does not compare the IDs:
// if another one has the same hash, both streams become parts, which is right for any stream.
func (w *Wholes) leave(hash uint64) (found bool) {
	at, found := w.byID[hash]
	if !found || w.all[at].id == nil {
		return false
	}
	w.toPart(&w.all[at])
	return true
}

// LeaveOpen makes the streams that are open in the store parts of the batch. It returns Err.
func (w *Wholes) LeaveOpen() error {
	for i := range w.all[:w.used] {
		if s := &w.all[i]; s.id != nil && w.recorder.store.IsOpen(s.ID) {
			w.toPart(s)
		}
	}
	return w.err
}

func (w *Wholes) toPart(s *wholeStream) {
	if err := w.decoder.DecodeStream(s.position, s.Message, s.Resource, w.batch, w.reject); w.err == nil {
		w.err = err
	}
	s.id = nil
	w.count--
}

// finished returns the stream as the store would have finished it.
func (s *wholeStream) finished(store *assembly.Store) assembly.Finished {
	batch := store.NewBatch()
	var decoder wire.TokenStreams
	_ = decoder.DecodeStream(s.position, s.Message, s.Resource, batch, func(int, string, error) {})
	return batch.Whole(s.ID)
}
