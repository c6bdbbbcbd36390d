// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "encoding/binary"

// partCache remembers the index of recently requested parts in a batch. Services
// often interleave many streams token by token, so each token requests another part.
// The cache saves most lookups in the map of the batch.
//
// A slot may hold the index of another stream, or one from an earlier batch. The
// cache therefore needs no reset, but callers must check that the part exists and has
// the ID.
type partCache [1 << slotBits]uint32

// slotBits makes about a thousand slots, so that hundreds of streams rarely collide.
const slotBits = 10

// slot returns the slot of an ID. It hashes eight bytes each from the beginning, the
// middle and the end, which differ for nearly all IDs in practice.
func (c *partCache) slot(id []byte) *uint32 {
	const word = 8
	var mix uint64
	if len(id) >= word {
		first, middle, last := id, id[(len(id)-word)/2:], id[len(id)-word:]
		mix = 5*binary.LittleEndian.Uint64(first) + 3*binary.LittleEndian.Uint64(middle) + binary.LittleEndian.Uint64(last)
	} else {
		for _, b := range id {
			mix = mix<<8 | uint64(b)
		}
	}
	// Fibonacci hashing: the factor is 2^64 divided by the golden ratio, and the upper
	// bits of the product depend on all bits of mix.
	return &c[mix*0x9e37_79b9_7f4a_7c15>>(64-slotBits)]
}
