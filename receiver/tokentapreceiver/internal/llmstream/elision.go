// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// jsonBuffer collects the bytes of an event. If they exceed the limit, it leaves out the rest of each long string and
// the later elements of each long array: images, audio, and the token IDs of a prompt. What remains is JSON if the event
// is, so usage, finish reason and tokens of such an event are known.
//
// What remains does not depend on the pieces in which the event arrives. Events within the limit are kept as they are.
type jsonBuffer struct {
	buffer
	elider elider
}

func (l Limits) jsonBuffer() jsonBuffer { return jsonBuffer{buffer: l.buffer()} }

// add appends p and reports whether what remains of the event fits.
func (b *jsonBuffer) add(p []byte) bool {
	if !b.elider.active {
		if len(b.bytes)+len(p) <= b.limit {
			return b.buffer.add(p)
		}
		held := b.bytes
		b.bytes, b.elider = held[:0], elider{active: true}
		b.elider.write(&b.buffer, held) // in place: what remains is never longer
	}
	return b.elider.write(&b.buffer, p)
}

func (b *jsonBuffer) reset() {
	b.buffer.reset()
	b.elider.active = false
	b.elider.omitted.reset()
}

// maxNested is the depth of arrays whose elements may be left out.
const maxNested = 32

// elider reads an event byte by byte, and appends to a buffer all but what it leaves out. It needs the same memory for an
// event of any length.
type elider struct {
	active bool

	quoted  bool // in a string
	escaped bool // after its backslash
	hex     int8 // digits that are left of its \u sequence
	start   int  // of the string in the buffer

	depth  int            // of open arrays and objects that are not left out
	arrays [maxNested]int // where those arrays start in the buffer; -1 for objects

	inString bool  // the rest of the string is left out
	left     int64 // characters of base64 of it
	omitted  omissions
	inArray  bool // the further elements of the innermost array are left out
	nested   int  // depth inside of them
}

// keptOfString and keptOfArray are the parts that remain of a long string and of a long array. An element is left out only
// as a whole.
func keptOfString(limit int) int { return max(limit/64, 16) }
func keptOfArray(limit int) int  { return max(limit/16, 16) }

// write reports whether what remains fits into the buffer.
func (e *elider) write(b *buffer, p []byte) bool {
	next := 0 // the first byte of p that is neither in the buffer nor left out
	from := 0 // the first byte of p that is left out of a string
	for i := 0; i < len(p); i++ {
		c, at := p[i], len(b.bytes)+i-next // where the byte belongs, if it remains
		switch {
		case e.escaped:
			if e.escaped = false; c == 'u' {
				e.hex = 4
				e.left -= 4
			}
		case e.hex > 0:
			e.hex--
		case e.quoted && c == '"':
			if e.quoted = false; e.inString {
				e.left += unpadded(p[from:i])
				e.omitted.add(omission{end: len(b.bytes), characters: e.left})
				e.inString, next = false, i
			}
		case e.inString:
			n := bytes.IndexAny(p[i:], "\"\\")
			if n < 0 {
				i = len(p)
				continue
			}
			if i += n; p[i] == '"' {
				i--
			} else {
				e.escaped = true
				e.left--
			}
		case e.quoted:
			if !e.inArray && at-e.start > keptOfString(b.limit) {
				if !b.add(p[next:i]) {
					return false
				}
				e.inString, e.left, from = true, 0, i
			}
			if e.escaped = c == '\\'; e.escaped {
				e.left--
			}
		case c == '"':
			e.quoted, e.start = true, at
		case e.inArray:
			if e.leaves(c) {
				next = i
			}
		case c == '{':
			e.open(-1)
		case c == '[':
			e.open(at)
		case c == '}' || c == ']':
			e.depth = max(e.depth-1, 0)
		case c == ',' && e.isLong(at, b.limit):
			if !b.add(p[next:i]) {
				return false
			}
			e.inArray, e.nested = true, 0
			e.omitted.lost = true
		}
	}
	if e.inString {
		e.left += unpadded(p[from:])
		return true
	}
	return e.inArray || b.add(p[next:])
}

// unpadded counts characters without the padding of base64.
func unpadded(p []byte) int64 { return int64(len(p) - bytes.Count(p, []byte("="))) }

func (e *elider) open(at int) {
	if e.depth < maxNested {
		e.arrays[e.depth] = at
	}
	e.depth++
}

// isLong reports whether the innermost array has reached what remains of it.
func (e *elider) isLong(at, limit int) bool {
	if e.depth == 0 || e.depth > maxNested {
		return false
	}
	start := e.arrays[e.depth-1]
	return start >= 0 && at-start > keptOfArray(limit)
}

// leaves reads a byte of an array that is left out, outside of strings. It reports whether the byte ends the array.
func (e *elider) leaves(c byte) bool {
	switch c {
	case '{', '[':
		e.nested++
	case '}', ']':
		if e.nested == 0 {
			e.inArray = false
			e.depth--
			return true
		}
		e.nested--
	}
	return false
}
