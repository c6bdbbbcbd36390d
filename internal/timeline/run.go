// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math"
)

// run is a number of successive chunks with the same tokens and channel. It is
// kept small because every open stream holds one.
type run struct {
	chunks int32
	meta   uint32 // tokens << channelBits | channel
}

func (r run) appendBinary(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(r.chunks)), uint64(r.meta))
}

// readRun reads a run and returns its encoded length, or 0 if it is malformed.
func readRun(b []byte) (r run, length int) {
	chunks, n := binary.Uvarint(b)
	if n <= 0 || chunks > math.MaxInt32 {
		return run{}, 0
	}
	meta, m := binary.Uvarint(b[n:])
	if m <= 0 || meta > math.MaxUint32 {
		return run{}, 0
	}
	return run{int32(chunks), uint32(meta)}, n + m
}
