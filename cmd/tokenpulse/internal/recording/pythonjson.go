// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import "io"

// pythonJSON makes JSON of what Python's json.dumps writes: NaN, Infinity and -Infinity become null.
type pythonJSON struct {
	source io.Reader
	buffer [32 << 10]byte
	ready  []byte // filtered, not yet read
	err    error

	inString, escaped, minus bool
	skip                     int // bytes to leave out
}

func (p *pythonJSON) Read(dst []byte) (int, error) {
	for len(p.ready) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		var n int
		n, p.err = p.source.Read(p.buffer[:])
		p.ready = p.filter(p.buffer[:n])
		if p.err != nil && p.minus {
			p.ready, p.minus = append(p.ready, '-'), false
		}
	}
	n := copy(dst, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// filter returns b itself if there is nothing to replace.
func (p *pythonJSON) filter(b []byte) []byte {
	var out []byte
	from := 0 // b[from:i] is not yet in out
	for i := range b {
		c := b[i]
		switch {
		case p.skip > 0:
			p.skip--
			from = i + 1
		case p.inString:
			switch {
			case p.escaped:
				p.escaped = false
			case c == '\\':
				p.escaped = true
			case c == '"':
				p.inString = false
			}
		case c == '"':
			p.inString = true
		case p.minus:
			p.minus = false
			if c != 'I' {
				out = append(out, '-')
				break
			}
			fallthrough
		case c == 'I', c == 'N':
			out = append(append(out, b[from:i]...), "null"...)
			p.skip = len("aN")
			if c == 'I' {
				p.skip = len("nfinity")
			}
			from = i + 1
		case c == '-':
			out = append(out, b[from:i]...)
			p.minus, from = true, i+1
		}
	}
	if out == nil && from == 0 {
		return b
	}
	return append(out, b[from:]...)
}
