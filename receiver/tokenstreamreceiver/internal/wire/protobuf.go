// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of an encoded protobuf message.
type field struct {
	num    protowire.Number
	kind   protowire.Type
	number uint64 // value of a varint or fixed64
	bytes  []byte // content of a length-delimited field
}

func (f *field) is(num protowire.Number, kind protowire.Type) bool {
	return f.num == num && f.kind == kind
}

// fields yields the fields of an encoded message and removes them from it. Bytes
// left in message after a full walk are malformed. Tags and lengths of one byte, the
// usual ones, take a fast path.
func fields(message *[]byte) func(yield func(field) bool) {
	return func(yield func(field) bool) {
		for rest := *message; len(rest) > 0; *message = rest {
			var f field
			var n int
			if tag := rest[0]; tag >= 1<<3 && tag < 0x80 {
				f.num, f.kind, n = protowire.Number(tag>>3), protowire.Type(tag&7), 1
			} else if f.num, f.kind, n = protowire.ConsumeTag(rest); n < 0 || f.num > protowire.MaxValidNumber {
				return
			}
			rest = rest[n:]
			switch f.kind {
			case protowire.VarintType:
				f.number, n = protowire.ConsumeVarint(rest)
			case protowire.Fixed64Type:
				f.number, n = protowire.ConsumeFixed64(rest)
			case protowire.BytesType:
				if len(rest) > 0 && rest[0] < 0x80 && int(rest[0]) < len(rest) {
					n = 1 + int(rest[0])
					f.bytes = rest[1:n]
				} else {
					f.bytes, n = protowire.ConsumeBytes(rest)
				}
			default:
				n = protowire.ConsumeFieldValue(f.num, f.kind, rest)
			}
			if n < 0 {
				return
			}
			rest = rest[n:]
			if !yield(f) {
				*message = rest
				return
			}
		}
	}
}

// openMessage appends the tag of a length-delimited field whose length is not
// known yet. Pass start to closeMessage once the content is appended.
func openMessage(dst []byte, num protowire.Number) (opened []byte, start int) {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return dst, len(dst)
}

// closeMessage inserts the length of the content that was appended since start.
func closeMessage(dst []byte, start int) []byte {
	length := len(dst) - start
	prefix := protowire.SizeVarint(uint64(length))
	for range prefix {
		dst = append(dst, 0)
	}
	copy(dst[start+prefix:], dst[start:start+length])
	protowire.AppendVarint(dst[:start], uint64(length))
	return dst
}
