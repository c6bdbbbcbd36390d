// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// linesFramer reads JSON lines: one JSON text per line, blank lines are dropped.
type linesFramer struct {
	line     jsonBuffer
	skipping bool
}

func (f *linesFramer) write(p []byte, out sink) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			f.keep(p)
			return
		}
		line := p[:end]
		if f.skipping || len(f.line.bytes) > 0 || len(line) > f.line.limit {
			f.keep(line)
			line = f.line.bytes
		}
		f.emit(line, out)
		p = p[end+1:]
	}
}

func (f *linesFramer) keep(p []byte) {
	f.skipping = f.skipping || !f.line.add(p)
}

func (f *linesFramer) emit(line []byte, out sink) {
	if f.skipping {
		out.tooLong()
	} else if data := bytes.TrimSpace(line); len(data) > 0 {
		out.event(event{data: data, omitted: f.line.elider.omitted.moved(cap(line) - cap(data))})
	}
	f.skipping = false
	f.line.reset()
}

// end emits an unterminated last line if it is complete.
func (f *linesFramer) end(out sink) {
	if !f.skipping {
		line := bytes.TrimSpace(f.line.bytes)
		if _, ok := parse(line); !ok && len(line) > 0 {
			out.tail()
			return
		}
	}
	f.emit(f.line.bytes, out)
}

func (f *linesFramer) release() { f.line.release() }

// documentFramer reads JSON objects by their braces: one document, several in a row,
// or the elements of an array.
type documentFramer struct {
	text     jsonBuffer
	depth    int
	inString bool
	escaped  bool
	skipping bool
	garbage  bool // the last byte between objects did not belong there
	array    bool // an array's bracket was opened
	closed   bool // and closed
}

func (f *documentFramer) write(p []byte, out sink) {
	start := 0 // of the part of the object that is in p
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case f.escaped:
			f.escaped = false
		case f.inString:
			n := bytes.IndexAny(p[i:], "\"\\")
			if n < 0 {
				i = len(p)
				continue
			}
			i += n
			f.escaped = p[i] == '\\'
			f.inString = f.escaped
		case c == '{' || c == '[' && f.depth > 0:
			if f.depth == 0 {
				start, f.garbage = i, false
			}
			f.depth++
		case f.depth == 0:
			f.between(c, out)
		case c == '"':
			f.inString = true
		case c == '}' || c == ']':
			if f.depth--; f.depth == 0 {
				f.keep(p[start : i+1])
				f.emit(out)
			}
		}
	}
	if f.depth > 0 {
		f.keep(p[start:])
	}
}

func (f *documentFramer) keep(p []byte) { f.skipping = f.skipping || !f.text.add(p) }

// between takes a byte outside any object.
func (f *documentFramer) between(c byte, out sink) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case ',':
		f.garbage = false
	case '[':
		f.array = true
	case ']':
		f.closed = true
	default:
		if !f.garbage {
			f.garbage = true
			out.invalid()
		}
	}
}

func (f *documentFramer) emit(out sink) {
	if f.skipping {
		out.tooLong()
	} else {
		out.event(event{data: f.text.bytes, omitted: f.text.elider.omitted.moved(0)})
	}
	f.skipping = false
	f.text.reset()
}

func (f *documentFramer) end(out sink) {
	if f.depth > 0 || f.array && !f.closed {
		out.tail()
	}
}

func (f *documentFramer) release() { f.text.release() }
