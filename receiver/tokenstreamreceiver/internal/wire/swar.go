// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// SWAR (SIMD within a register): eight bytes of text are one machine word, and one
// instruction tests all of them. This is exact as long as no byte of the word
// carries into the next one.

// ones has a one in each byte, tops the highest bit of each byte.
const (
	ones uint64 = 0x01_01_01_01_01_01_01_01
	tops        = ones << 7
)

// plain marks the bytes that a JSON string may contain as they are.
var plain = func() (table [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// plainLength returns the number of plain bytes at the start of text.
func plainLength(text []byte) int {
	at := 0
	for ; len(text)-at >= 8; at += 8 {
		if found := notPlain(binary.LittleEndian.Uint64(text[at:])); found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(text) && plain[text[at]] {
		at++
	}
	return at
}

// notPlain returns a word whose lowest set bit is in the first byte that is not
// plain, or zero. Later bytes may be wrong, because a subtraction that sets the
// highest bit of a byte borrows from the next one.
func notPlain(word uint64) uint64 {
	control := word - ' '*ones
	quote := word ^ '"'*ones - ones
	backslash := word ^ '\\'*ones - ones
	return (word | control | quote | backslash) & tops
}

// mostDigits is the number of digits of the largest int64. Every number of so many
// digits fits a uint64.
const mostDigits = len("9223372036854775807")

// leadingDigits returns the number that text starts with and the text after it. rest
// is nil if text starts with no decimal digit or with more than mostDigits.
func leadingDigits(text []byte) (n uint64, rest []byte) {
	at := 0
	for ; len(text)-at >= 8; at += 8 {
		word := binary.LittleEndian.Uint64(text[at:])
		if !eightDigits(word) {
			break
		}
		n = n*1e8 + numberOf(word)
	}
	for ; at < len(text) && isDigit(text[at]); at++ {
		n = n*10 + uint64(text[at]-'0')
	}
	if at == 0 || at > mostDigits {
		return 0, nil
	}
	return n, text[at:]
}

// leastNineteen is the smallest number of mostDigits digits without leading zero.
const leastNineteen = 1e18

// nineteenDigits returns the number that the first mostDigits bytes of text are, or
// zero if they are not all decimal digits. Times in nanoseconds have so many from
// 2001 to 2286.
func nineteenDigits(text []byte) uint64 {
	if len(text) < mostDigits {
		return 0
	}
	first := binary.LittleEndian.Uint64(text)
	middle := binary.LittleEndian.Uint64(text[8:])
	last := binary.LittleEndian.Uint64(text[11:])
	if !eightDigits(first) || !eightDigits(middle) || !eightDigits(last) {
		return 0
	}
	// last overlaps middle by five digits. The shift keeps the other three, as the
	// last digits of a word of zeros.
	return numberOf(first)*1e11 + numberOf(middle<<40)*1e8 + numberOf(last)
}

// eightDigits reports whether all bytes are decimal digits: the upper half of each is
// that of '0', also after adding the distance from '9' to the end of that range.
func eightDigits(word uint64) bool {
	const upper = 0xf0 * ones
	return word&upper == '0'*ones && (word+('?'-'9')*ones)&upper == '0'*ones
}

// numberOf returns the number of eight decimal digits, the first one in the lowest
// byte. Each step joins neighbours: to numbers of two digits, of four, of eight.
func numberOf(word uint64) uint64 {
	word &= 0x0f * ones
	word = word * (10<<8 + 1) >> 8 & 0x00ff_00ff_00ff_00ff
	word = word * (100<<16 + 1) >> 16 & 0x0000_ffff_0000_ffff
	return word * (10_000<<32 + 1) >> 32
}

func isDigit(c byte) bool { return c-'0' < 10 }
