// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"encoding/binary"
	"errors"
	"strings"
)

// The opcodes and bits of RFC 6455.
const (
	opcodeContinuation = 0x0
	opcodeText         = 0x1
	opcodeBinary       = 0x2
	firstControlOpcode = 0x8
	bitFinal           = 0x80
	bitCompressed      = 0x40
	bitsReserved       = 0x70
	bitMasked          = 0x80
	maskBytes          = 4
)

// webSocketFramer reads the messages that one side of a connection sends. Only a client
// masks its frames. Reserved bits mean an extension; permessage-deflate is read if it was
// agreed on. Anything else ends the reading.
type webSocketFramer struct {
	message    jsonBuffer
	head       [14]byte
	have       int // bytes of the frame's head
	need       int // its size
	left       uint64
	masks      byte      // bitMasked if this side masks its frames
	masked     int       // bytes of the frame that were unmasked
	inflater   *inflater // nil without permessage-deflate
	control    bool      // the frame is a control frame
	open       bool      // a message has begun
	compressed bool      // and is compressed
	skipping   bool
	dead       bool
}

// newWebSocketFramer returns a framer of the client's or the server's side. extensions is
// the server's Sec-WebSocket-Extensions.
func newWebSocketFramer(limits Limits, client bool, extensions string) webSocketFramer {
	f := webSocketFramer{message: limits.jsonBuffer()}
	forgets := "server_no_context_takeover"
	if client {
		f.masks, forgets = bitMasked, "client_no_context_takeover"
	}
	if strings.Contains(extensions, "permessage-deflate") {
		f.inflater = &inflater{text: limits.buffer(), keeps: !strings.Contains(extensions, forgets)}
	}
	return f
}

func (f *webSocketFramer) write(p []byte, out sink) {
	for len(p) > 0 && !f.dead {
		if f.have < max(f.need, 2) {
			f.head[f.have] = p[0]
			f.have++
			p = p[1:]
			if f.have == 2 {
				f.need = headBytes(f.head[1])
			}
			if f.have == f.need {
				f.begin(out)
			}
			continue
		}
		n := int(min(f.left, uint64(len(p))))
		if !f.control && !f.skipping {
			if f.skipping = !f.keep(p[:n]); f.masks != 0 && !f.skipping {
				f.unmask(f.message.bytes[len(f.message.bytes)-n:])
			}
		}
		f.left -= uint64(n)
		p = p[n:]
		if f.left == 0 {
			f.finish(out)
		}
	}
}

// keep stores a part of a message. Bytes that are compressed or masked are no JSON yet.
func (f *webSocketFramer) keep(p []byte) bool {
	if f.compressed || f.masks != 0 {
		return f.message.buffer.add(p)
	}
	return f.message.add(p)
}

// headBytes returns the size of a frame's head by its second byte.
func headBytes(second byte) int {
	n := 2
	switch second &^ bitMasked {
	case 126:
		n = 4
	case 127:
		n = 10
	}
	if second&bitMasked != 0 {
		n += maskBytes
	}
	return n
}

// unmask removes the mask from the next bytes of a frame.
func (f *webSocketFramer) unmask(p []byte) {
	mask := f.head[f.need-maskBytes : f.need]
	for i := range p {
		p[i] ^= mask[f.masked%maskBytes]
		f.masked++
	}
}

func (f *webSocketFramer) begin(out sink) {
	switch length := f.head[1] &^ bitMasked; length {
	case 126:
		f.left = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		f.left = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.left = uint64(length)
	}
	f.masked = 0
	opcode := f.head[0] & 0xf
	f.control = opcode >= firstControlOpcode
	begins := opcode == opcodeText || opcode == opcodeBinary
	reserved := f.head[0] & bitsReserved
	if begins && f.inflater != nil {
		f.compressed = reserved == bitCompressed
		reserved &^= bitCompressed
	}
	if reserved != 0 || f.head[1]&bitMasked != f.masks ||
		!f.control && (begins == f.open || !begins && opcode != opcodeContinuation) {
		f.fail(out)
		return
	}
	f.open = f.open || begins
	if f.left == 0 {
		f.finish(out)
	}
}

func (f *webSocketFramer) fail(out sink) {
	f.stop()
	out.corrupt()
}

// stop ends the reading and releases the memory.
func (f *webSocketFramer) stop() {
	f.dead = true
	f.message.release()
	if f.inflater != nil {
		f.inflater.release()
		f.inflater = nil
	}
}

func (f *webSocketFramer) finish(out sink) {
	f.have, f.need = 0, 0
	if f.control || f.head[0]&bitFinal == 0 {
		return
	}
	f.open = false
	text := f.message.bytes
	if f.compressed && !f.skipping {
		if f.skipping = !f.keep([]byte(messageTail)); !f.skipping {
			var err error
			text, err = f.inflater.inflate(f.message.bytes)
			if f.skipping = errors.Is(err, errTooLong); err != nil && !f.skipping {
				f.fail(out)
				return
			}
		}
	}
	if f.skipping {
		out.tooLong()
		if f.inflater != nil && f.compressed && f.inflater.keeps {
			f.fail(out) // later messages refer to what was not read
			return
		}
	} else {
		out.event(event{data: text, omitted: f.message.elider.omitted.moved(0)})
	}
	f.skipping = false
	f.message.reset()
	if f.inflater != nil {
		f.inflater.text.reset()
	}
}

func (f *webSocketFramer) end(out sink) {
	if (f.have > 0 || f.open) && !f.dead {
		out.tail()
	}
}
