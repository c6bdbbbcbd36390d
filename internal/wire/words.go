package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Eight bytes of text are one machine word. What is asked of each of them can be
// asked of all at once, as long as no byte of the word overflows into the next
// before the answer is there.

// ones has a one in each byte, tops the highest bit.
const (
	ones uint64 = 0x01_01_01_01_01_01_01_01
	tops        = ones << 7
)

// plain marks the bytes that need no attention inside a string.
var plain = func() (table [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// plainLength returns how many plain bytes text starts with.
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

// notPlain returns a word whose lowest bit is in the first byte that is not
// plain, or zero. Bytes after that one may be wrong: a subtraction that sets a
// byte's highest bit because it is less borrows from the next.
func notPlain(word uint64) uint64 {
	control := word - ' '*ones
	quote := word ^ '"'*ones - ones
	backslash := word ^ '\\'*ones - ones
	return (word | control | quote | backslash) & tops
}

// mostDigits is the length of the largest int64. So many digits fit an uint64.
const mostDigits = len("9223372036854775807")

// leadingDigits returns the number that the decimal digits at the start of text
// make, and what comes after them: nil, if there are none or more than mostDigits.
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

// leastNineteen is the least number of mostDigits, without a zero in front.
const leastNineteen = 1e18

// nineteenDigits returns the number that the first mostDigits of text make, or
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
	// Three digits of the middle are not in the last: the shift moves them to the
	// end, behind zeros.
	return numberOf(first)*1e11 + numberOf(middle<<40)*1e8 + numberOf(last)
}

// eightDigits reports whether all bytes are decimal digits: their upper half is
// that of '0', and still is after adding what takes '9' to the end of it.
func eightDigits(word uint64) bool {
	const upper = 0xf0 * ones
	return word&upper == '0'*ones && (word+('?'-'9')*ones)&upper == '0'*ones
}

// numberOf returns the number that eight decimal digits make. Each step joins
// neighbours: digits to numbers of two digits, these to four, these to eight. The
// first digit is in the lowest byte.
func numberOf(word uint64) uint64 {
	word &= 0x0f * ones
	word = word * (10<<8 + 1) >> 8 & 0x00ff_00ff_00ff_00ff
	word = word * (100<<16 + 1) >> 16 & 0x0000_ffff_0000_ffff
	return word * (10_000<<32 + 1) >> 32
}
