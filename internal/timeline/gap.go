// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math/bits"
)

// ScanGaps reads gaps in the packed form of a timeline and returns their number
// and their sum in ticks. ok is false for malformed gaps, for a negative gap, and
// for a gap of a second or more, which takes over three bytes.
func ScanGaps(gaps []byte) (chunks int, ticks int64, ok bool) {
	var all uint32 // bitwise OR of all gaps; bit 0 is the sign
	at := 0
	for ; len(gaps)-at >= 4; chunks++ {
		gap, width := shortGap(binary.LittleEndian.Uint32(gaps[at:]))
		if width == 0 {
			return 0, 0, false
		}
		at += width
		all |= gap
		ticks += int64(gap >> 1)
	}
	for ; at < len(gaps); chunks++ {
		gap, width := binary.Uvarint(gaps[at:])
		if width <= 0 || width > shortWidth {
			return 0, 0, false
		}
		at += width
		all |= uint32(gap)
		ticks += int64(gap >> 1)
	}
	return chunks, ticks, all&1 == 0
}

// shortWidth is the largest encoded length of a short gap, one under about a second.
const shortWidth = 3

// shortGap reads a varint of up to three bytes from the next four bytes. width is
// 0 for a longer one. Nearly all gaps take three bytes: the first branch is
// predicted, so the CPU starts on the next gap early. Shorter widths are not
// predictable and are decoded without a branch: the lowest byte without a
// continuation bit is the last one.
func shortGap(word uint32) (gap uint32, width int) {
	if word&0x808080 == 0x8080 {
		return word&0x7f | word>>1&0x3f80 | word>>2&0x1fc000, 3
	}
	ends := ^word & 0x808080
	word &= ends ^ (ends - 1)
	return word&0x7f | word>>1&0x3f80 | word>>2&0x1fc000, (bits.TrailingZeros32(ends|1<<31) + 1) / 8 % 4
}

// appendGap is binary.AppendUvarint with a single append for the common widths.
func appendGap(gaps []byte, gap uint64) []byte {
	switch {
	case gap < 1<<7:
		return append(gaps, byte(gap))
	case gap < 1<<14:
		return append(gaps, byte(gap)|0x80, byte(gap>>7))
	case gap < 1<<21:
		return append(gaps, byte(gap)|0x80, byte(gap>>7)|0x80, byte(gap>>14))
	default:
		return binary.AppendUvarint(gaps, gap)
	}
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
