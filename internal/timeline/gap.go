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

// CountGaps returns the number of gaps if ScanGaps would accept them, at less than half of its cost.
// Their sum is at most MaxShortGap times their number.
func CountGaps(gaps []byte) (chunks int, ok bool) {
	if len(gaps) == 0 {
		return 0, true
	}
	invalid := uint64(gaps[len(gaps)-1]) & tops // a gap is truncated
	var before uint64
	for ; len(gaps) >= 8; gaps = gaps[8:] {
		n, wrong := countGaps(binary.LittleEndian.Uint64(gaps), &before)
		chunks += n
		invalid |= wrong
	}
	var last [8]byte // its zeros are gaps, too
	chunks -= len(last) - copy(last[:], gaps)
	n, wrong := countGaps(binary.LittleEndian.Uint64(last[:]), &before)
	return chunks + n, invalid|wrong == 0
}

// tops has the highest bit of each byte, which says that the gap continues in the next one.
const tops uint64 = 0x80_80_80_80_80_80_80_80

// countGaps returns how many gaps end in eight bytes. invalid is not 0 if one of their gaps is
// negative or takes over three bytes. before has the top bits of the eight bytes before.
func countGaps(word uint64, before *uint64) (chunks int, invalid uint64) {
	// Each has the top bit of some bytes: continued of those whose gap goes on in the next byte, second of
	// the second and further bytes of a gap, and third of the third and further ones.
	continued := word & tops
	second := continued<<8 | *before>>56
	third := second & (continued<<16 | *before>>48)
	*before = continued
	return bits.OnesCount64(^continued & tops), continued&third | word&(^second&tops>>7)
}

// MaxShortGap is the longest gap that CountGaps accepts.
const MaxShortGap = (1<<(7*shortWidth-1) - 1) * Tick

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

// gapPair reads two gaps of three bytes, which nearly all gaps take: those between 8 ms and a second.
// They are the halves of pair, in ticks. ok is false for others, and if one of them is negative.
func gapPair(word uint64) (pair uint64, ok bool) {
	const both = 1<<32 | 1
	pair = word&0xff_ff_ff | word&0xff_ff_ff_00_00_00<<8
	ok = pair&(0x80_80_81*both) == 0x80_80*both
	return (pair&(0x7f*both) | pair>>1&(0x3f80*both) | pair>>2&(0x1fc000*both)) >> 1, ok
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
