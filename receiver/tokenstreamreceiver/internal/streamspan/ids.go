// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// ID identifies the span of a stream. It is zero for a stream without one.
type ID struct {
	Trace [16]byte
	Span  [8]byte
}

// idOf returns the IDs of a stream's span. Missing IDs are derived from the stream, so that a
// stream that is sent twice results in the same span twice. resourceSeed is resource.seed.
func idOf(start *assembly.Start, stream string, resourceSeed []byte) ID {
	id := ID{start.TraceID, start.SpanID}
	if id.Trace == [16]byte{} || id.Span == [8]byte{} {
		derived := deriveIDs(start, stream, resourceSeed)
		if id.Trace == [16]byte{} {
			copy(id.Trace[:], derived[:16])
		}
		if id.Span == [8]byte{} {
			copy(id.Span[:], derived[16:])
		}
	}
	return id
}

func deriveIDs(start *assembly.Start, stream string, resourceSeed []byte) [sha256.Size]byte {
	var room [1024]byte // avoids an allocation
	seed := append(AppendSeed(room[:0], start), stream...)
	seed = append(seed, 0)
	seed = append(seed, resourceSeed...)
	return sha256.Sum256(seed)
}

// AppendSeed appends what distinguishes streams by their start. Together with the stream's ID and its
// resource, it decides the IDs of a span whose sender sets none.
func AppendSeed(seed []byte, start *assembly.Start) []byte {
	seed = append(seed, start.TraceID[:]...)
	seed = append(seed, start.SpanID[:]...)
	seed = append(seed, start.ParentSpanID[:]...)
	return binary.BigEndian.AppendUint64(seed, uint64(start.UnixNano))
}

// maxHashedResource is the size in bytes up to which each stream hashes its resource.
// The streams of a larger one hash its digest.
const maxHashedResource = 512

// seed returns the bytes that the IDs of spans with this resource are derived from.
func (r *resource) seed() []byte {
	if len(r.encoded) > maxHashedResource {
		return r.digest[:]
	}
	return r.encoded
}
