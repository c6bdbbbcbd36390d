// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "encoding/binary"

// The opcodes and bits of RFC 6455.
const (
	opcodeContinuation = 0x0
	opcodeText         = 0x1
	opcodeBinary       = 0x2
	firstControlOpcode = 0x8
	bitFinal           = 0x80
	bitsReserved       = 0x70
	bitMasked          = 0x80
)

// webSocketFramer reads the messages that a WebSocket server sends. Masked frames are
// errors of the server; reserved bits mean an extension such as compression, which is
// not read. Both end the reading.
type webSocketFramer struct {
	message  buffer
	head     [10]byte
	have     int // bytes of the frame's head
	need     int // its size
	left     uint64
	control  bool // the frame is a control frame
	open     bool // a message has begun
	skipping bool
	dead     bool
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
			f.skipping = !f.message.add(p[:n])
		}
		f.left -= uint64(n)
		p = p[n:]
		if f.left == 0 {
			f.finish(out)
		}
	}
}

// headBytes returns the size of a frame's head by its second byte.
func headBytes(second byte) int {
	switch second &^ bitMasked {
	case 126:
		return 4
	case 127:
		return 10
	default:
		return 2
	}
}

func (f *webSocketFramer) begin(out sink) {
	switch f.need {
	case 4:
		f.left = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 10:
		f.left = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.left = uint64(f.head[1] &^ bitMasked)
	}
	opcode := f.head[0] & 0xf
	f.control = opcode >= firstControlOpcode
	begins := opcode == opcodeText || opcode == opcodeBinary
	if f.head[0]&bitsReserved != 0 || f.head[1]&bitMasked != 0 ||
		!f.control && (begins == f.open || !begins && opcode != opcodeContinuation) {
		f.dead = true
		out.corrupt()
		return
	}
	f.open = f.open || begins
	if f.left == 0 {
		f.finish(out)
	}
}

func (f *webSocketFramer) finish(out sink) {
	f.have, f.need = 0, 0
	if f.control || f.head[0]&bitFinal == 0 {
		return
	}
	f.open = false
	if f.skipping {
		out.tooLong()
	} else {
		out.event(event{data: f.message.bytes})
	}
	f.skipping = false
	f.message.reset()
}

func (f *webSocketFramer) end(out sink) {
	if (f.have > 0 || f.open) && !f.dead {
		out.tail()
	}
}
