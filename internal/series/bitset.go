// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"iter"
	"math/bits"
)

// bitset is a set of numbers below 64.
type bitset uint64

// A bitset has room for each Quantity and Count.
const _ = uint(64-singleValues) + uint(64-counts)

func (s *bitset) add(n uint8) { *s |= 1 << n }

func (s bitset) has(n uint8) bool { return s>>n&1 != 0 }

// all yields the numbers in ascending order.
func (s bitset) all() iter.Seq[uint8] {
	return func(yield func(uint8) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(uint8(bits.TrailingZeros64(uint64(s)))) {
				return
			}
		}
	}
}
