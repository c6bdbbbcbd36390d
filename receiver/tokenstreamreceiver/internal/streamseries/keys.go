// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamseries

import (
	"encoding/binary"

	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// streamKeys are the keys that recognise streams that come again. Two streams have the same
// key if their spans would have the same IDs and vantage.
type streamKeys struct {
	set  *dedup.Set
	keys []dedup.Key
	seed []byte
	// The resource of the last stream, and its hash.
	resource []byte
	hashed   dedup.Key
}

func (k *streamKeys) reset() { k.keys, k.resource = k.keys[:0], nil }

// add appends the key of a stream.
func (k *streamKeys) add(start *assembly.Start, id string, resource []byte) {
	if !k.addIDs(start) {
		k.addSeed(append(k.seedOf(start, resource), id...))
	}
}

// addBytes appends the key of a whole stream, as add does.
func (k *streamKeys) addBytes(s *wholeStream) {
	if !k.addIDs(&s.Start) {
		k.addSeed(append(k.seedOf(&s.Start, s.Resource), s.ID...))
	}
}

// addIDs appends the key of a stream whose sender set the IDs of its span.
func (k *streamKeys) addIDs(start *assembly.Start) bool {
	if start.TraceID == [16]byte{} || start.SpanID == [8]byte{} {
		return false
	}
	id := dedup.ID{TraceID: start.TraceID, SpanID: start.SpanID, Vantage: start.Vantage.OrDefault().String()}
	k.keys = append(k.keys, k.set.KeyOf(&id))
	return true
}

func (k *streamKeys) addSeed(seed []byte) {
	k.seed = seed
	k.keys = append(k.keys, k.set.KeyOfSeed(seed))
}

// seedOf returns what the IDs of a stream's span are derived from, without the stream's ID, and
// its vantage.
func (k *streamKeys) seedOf(start *assembly.Start, resource []byte) []byte {
	seed := streamspan.AppendSeed(k.seed[:0], start)
	seed = binary.BigEndian.AppendUint64(seed, uint64(k.hash(resource)))
	return append(seed, byte(start.Vantage.OrDefault()))
}

// hash returns the hash of a resource, which streams of a request mostly share.
func (k *streamKeys) hash(resource []byte) dedup.Key {
	if len(resource) == 0 || len(resource) != len(k.resource) || &resource[0] != &k.resource[0] {
		k.resource, k.hashed = resource, k.set.KeyOfSeed(resource)
	}
	return k.hashed
}
