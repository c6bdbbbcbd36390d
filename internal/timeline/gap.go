// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import "encoding/binary"

// ScanGaps reads gaps in the packed form of a timeline and returns their number
// and their sum in ticks. ok is false for malformed gaps, for a negative gap, and
// for a gap of a second or more, which takes over three bytes.
func ScanGaps(gaps []byte) (chunks int, ticks int64, ok bool) {
	for at := 0; at < len(gaps); {
		if first, second, ok := gapPair(gaps, at); ok {
			at += pairWidth
			chunks += 2
			ticks += first + second
			continue
		}
		gap, width := binary.Uvarint(gaps[at:])
		if width <= 0 || width > shortWidth || gap&1 != 0 { // bit 0 is the sign
			return 0, 0, false
		}
		at += width
		chunks++
		ticks += int64(gap >> 1)
	}
	return chunks, ticks, true
}

const (
	shortWidth = 3 // largest encoded length of a short gap, one under about a second
	pairWidth  = 2 * shortWidth
)

// gapPair reads two gaps of three bytes, which nearly all gaps take: those between 8 ms and a second.
// They are in ticks. ok is false for others, and if one of them is negative. Without it, an answer of
// 500 tokens would cost the Collector over a fifth more.
func gapPair(gaps []byte, at int) (first, second int64, ok bool) {
	if len(gaps)-at < 8 {
		return 0, 0, false
	}
	const both = 1<<32 | 1
	word := binary.LittleEndian.Uint64(gaps[at:])
	pair := word&0xff_ff_ff | word&0xff_ff_ff_00_00_00<<8
	ok = pair&(0x80_80_81*both) == 0x80_80*both
	pair = (pair&(0x7f*both) | pair>>1&(0x3f80*both) | pair>>2&(0x1fc000*both)) >> 1
	return int64(uint32(pair)), int64(pair >> 32), ok
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
