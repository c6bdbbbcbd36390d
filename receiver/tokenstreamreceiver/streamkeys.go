// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"encoding/binary"
	"unsafe"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/vantage"
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
func (k *streamKeys) add(stream *assembly.Stream) {
	start := &stream.Start
	observer := vantageOf(start.Vantage)
	if start.TraceID != [16]byte{} && start.SpanID != [8]byte{} {
		k.keys = append(k.keys, k.set.KeyOf(&dedup.ID{TraceID: start.TraceID, SpanID: start.SpanID, Vantage: observer.String()}))
		return
	}
	k.seed = append(k.seed[:0], start.TraceID[:]...)
	k.seed = append(k.seed, start.SpanID[:]...)
	k.seed = append(k.seed, start.ParentSpanID[:]...)
	k.seed = binary.BigEndian.AppendUint64(k.seed, uint64(start.UnixNano))
	k.seed = binary.BigEndian.AppendUint64(k.seed, uint64(k.hash(stream.Resource)))
	k.seed = append(k.seed, byte(observer))
	k.seed = append(k.seed, stream.ID...)
	k.keys = append(k.keys, k.set.KeyOfSeed(k.seed))
}

// hash returns the hash of a resource, which streams of a request mostly share.
func (k *streamKeys) hash(resource []byte) dedup.Key {
	if len(resource) != len(k.resource) || unsafe.SliceData(resource) != unsafe.SliceData(k.resource) || k.resource == nil {
		k.resource, k.hashed = resource, k.set.KeyOfSeed(resource)
	}
	return k.hashed
}

// vantageOf returns the vantage of a stream's span.
func vantageOf(v vantage.Vantage) vantage.Vantage {
	if v == vantage.Unspecified {
		return vantage.Server
	}
	return v
}
