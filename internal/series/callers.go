// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// callers remembers which vantage saw a trace last, by a hash of the trace and the side. A trace replaces another with
// the same hash.
type callers [1 << 12]atomic.Uint64

// saw reports whether another vantage that counts for the same side saw the trace before.
func (c *callers) saw(trace [16]byte, vantage string, side conventions.Side) bool {
	const vantageBit = 1
	id := binary.LittleEndian.Uint64(trace[:]) ^ binary.LittleEndian.Uint64(trace[8:])
	v, _ := timeline.ParseVantage(vantage) // the two of a side differ in the bit
	now := id&^vantageBit | uint64(v)&vantageBit
	before := c[(id>>1*2+uint64(side))%uint64(len(c))].Swap(now)
	return id != 0 && before != now && before&^vantageBit == now&^vantageBit
}
