// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"encoding/binary"
	"hash/crc32"
)

// The sizes of an AWS event stream frame: prelude (total length, headers length, CRC of
// both), headers, payload, CRC of all before it.
const (
	preludeBytes  = 12
	crcBytes      = 4
	maxFrameBytes = 16 << 20
)

// awsFramer reads application/vnd.amazon.eventstream. A wrong checksum or an absurd
// length ends the reading: there is no boundary to continue from.
type awsFramer struct {
	frame    buffer
	prelude  [preludeBytes]byte
	have     int // bytes of the prelude
	left     int // bytes of the frame after the prelude
	skipping bool
	dead     bool
}

func (f *awsFramer) write(p []byte, out sink) {
	for len(p) > 0 && !f.dead {
		if f.have < preludeBytes {
			n := copy(f.prelude[f.have:], p)
			f.have += n
			p = p[n:]
			if f.have == preludeBytes {
				f.begin(out)
			}
			continue
		}
		n := min(f.left, len(p))
		if !f.skipping {
			f.skipping = !f.frame.add(p[:n])
		}
		f.left -= n
		p = p[n:]
		if f.left == 0 {
			f.finish(out)
		}
	}
}

func (f *awsFramer) begin(out sink) {
	total := binary.BigEndian.Uint32(f.prelude[:])
	headers := binary.BigEndian.Uint32(f.prelude[4:])
	sum := binary.BigEndian.Uint32(f.prelude[8:])
	if sum != crc32.ChecksumIEEE(f.prelude[:8]) || total > maxFrameBytes || headers > maxFrameBytes ||
		total < preludeBytes+headers+crcBytes {
		f.dead = true
		out.corrupt()
		return
	}
	f.left = int(total) - preludeBytes
	f.skipping = int(total) > f.frame.limit
}

func (f *awsFramer) finish(out sink) {
	f.have = 0
	if f.skipping {
		out.tooLong()
		return
	}
	body := f.frame.bytes
	sum := binary.BigEndian.Uint32(body[len(body)-crcBytes:])
	body = body[:len(body)-crcBytes]
	if crc32.Update(crc32.ChecksumIEEE(f.prelude[:]), crc32.IEEETable, body) != sum {
		f.dead = true
		out.corrupt()
		return
	}
	headers := binary.BigEndian.Uint32(f.prelude[4:])
	e := event{data: body[headers:]}
	if !readHeaders(body[:headers], &e) {
		out.invalid()
	}
	out.event(e)
	f.frame.reset()
}

func (f *awsFramer) end(out sink) {
	if f.have > 0 && !f.dead {
		out.tail()
	}
}

// valueBytes holds the sizes of header values by type; types 6 and 7 (bytes and string)
// have a length of their own.
var valueBytes = [...]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}

// readHeaders reads the event's kind and type. It returns false for malformed headers.
func readHeaders(h []byte, e *event) bool {
	for len(h) > 0 {
		n := 1 + int(h[0])
		if len(h) < n+1 {
			return false
		}
		name, kind := h[1:n], h[n]
		h = h[n+1:]
		var size int
		switch {
		case kind == 6 || kind == 7:
			if len(h) < 2 {
				return false
			}
			size = int(binary.BigEndian.Uint16(h))
			h = h[2:]
		case int(kind) < len(valueBytes):
			size = valueBytes[kind]
		default:
			return false
		}
		if len(h) < size {
			return false
		}
		text := h[:size]
		h = h[size:]
		switch string(name) {
		case ":message-type":
			e.exception = string(text) == "exception" || string(text) == "error"
		case ":event-type", ":exception-type", ":error-code":
			e.name = text
		}
	}
	return true
}

func (f *awsFramer) release() { f.frame.release() }
