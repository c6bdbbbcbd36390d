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

// addKey appends the key of a stream.
func addKey(k *streamKeys, start *assembly.Start, id string, resource []byte) {
	vantage := start.Vantage.OrDefault()
	if start.TraceID != [16]byte{} && start.SpanID != [8]byte{} { // the sender set the IDs of the span
		k.keys = append(k.keys, k.set.KeyOf(&dedup.ID{TraceID: start.TraceID, SpanID: start.SpanID, Vantage: vantage.String()}))
		return
	}
	// What the IDs of the span are derived from.
	k.seed = streamspan.AppendSeed(k.seed[:0], start)
	k.seed = binary.BigEndian.AppendUint64(k.seed, uint64(k.hash(resource)))
	k.seed = append(append(k.seed, byte(vantage)), id...)
	k.keys = append(k.keys, k.set.KeyOfSeed(k.seed))
}

// hash returns the hash of a resource, which streams of a request mostly share.
func (k *streamKeys) hash(resource []byte) dedup.Key {
	if len(resource) == 0 || len(resource) != len(k.resource) || &resource[0] != &k.resource[0] {
		k.resource, k.hashed = resource, k.set.KeyOfSeed(resource)
	}
	return k.hashed
}
