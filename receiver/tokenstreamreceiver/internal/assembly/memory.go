// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "unsafe"

// MaxMemory bounds two accounts together: the memory of open streams, and the memory
// that requests in progress have reserved for their bodies and batches. Open streams
// leave requestShare of it to requests, so that the events that end streams are
// accepted when streams have used up their part.

// requestShare is the share of MaxMemory, as a divisor, that open streams cannot use.
const requestShare = 8

// ErrTooMuchMemory is the error of a request that never fits into MaxMemory.
var ErrTooMuchMemory = Errorf(Limit, "the request needs more memory than max_memory_mib; send smaller requests, or raise max_memory_mib")

// MaxMemory returns the limit of both accounts.
func (s *Store) MaxMemory() int64 { return s.limits.MaxMemory }

// Reserve counts more bytes of a request in progress toward MaxMemory until Release. held
// is what the request has reserved already. If the bytes do not fit, Reserve reserves
// nothing and returns a FullError, or ErrTooMuchMemory if the request alone is too large.
func (s *Store) Reserve(held, more int64) error {
	if held+more > s.limits.MaxMemory {
		return ErrTooMuchMemory
	}
	if s.requests.Add(more)+s.memory.Load() > s.limits.MaxMemory {
		s.requests.Add(-more)
		return &FullError{Setting: SettingMaxMemory}
	}
	return nil
}

// Release ends the reservation of n bytes.
func (s *Store) Release(n int64) { s.requests.Add(-n) }

// maxStreamMemory returns the limit of the memory of open streams.
func (s *Store) maxStreamMemory() int64 {
	limit := s.limits.MaxMemory
	return limit - max(limit/requestShare, s.requests.Load())
}

const (
	// partMemory is about the memory of a part in a batch until its stream is in the
	// pipeline: the part, its index, and a span without attributes of the sender. A span with
	// latencies takes a little more, one with a timeline less.
	partMemory = int64(unsafe.Sizeof(Part{})) + 1400
	// spilledMemory is the memory of a chunk out of order, in a slice with spare
	// capacity.
	spilledMemory = 2 * int64(unsafe.Sizeof(Chunk{}))
)

// LimitMemory makes the batch call reserve before it grows by a number of bytes. If
// reserve returns an error, the batch rejects further events, and Begin returns the
// error. The batch does not release anything.
func (b *Batch) LimitMemory(reserve func(bytes int64) error) { b.reserve = reserve }

// grows reports whether there is memory for the batch to grow.
func (b *batchState) grows(bytes int64) bool {
	if b.errMemory == nil && b.reserve != nil {
		b.errMemory = b.reserve(bytes)
	}
	return b.errMemory == nil
}
