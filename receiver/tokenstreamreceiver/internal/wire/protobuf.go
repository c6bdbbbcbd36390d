// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Wire types: those of protowire, for tags, too.
const (
	varintType  = 0
	fixed64Type = 1
	bytesType   = 2
)

// fields reads the fields of an encoded protobuf message, one after the other:
//
//	f := fieldsOf(message)
//	for f.next() {
//		use(f.num, f.kind, f.number, f.bytes)
//	}
//
// It ends at malformed bytes. Declare it before the loop: a variable of the loop would be copied in
// each iteration.
type fields struct {
	num    protowire.Number
	kind   protowire.Type
	number uint64 // value of a varint or fixed64
	bytes  []byte // content of a length-delimited field
	rest   []byte // what follows the field
}

func fieldsOf(message []byte) fields { return fields{rest: message} }

// next moves to the next field and reports whether there is one.
func (f *fields) next() bool {
	tag, n := consumeVarint(f.rest)
	if n <= 0 {
		return false
	}
	f.num, f.kind = protowire.DecodeTag(tag)
	f.number, f.bytes = 0, nil
	if f.num < protowire.MinValidNumber || f.num > protowire.MaxValidNumber {
		return false
	}
	rest := f.rest[n:]
	switch f.kind {
	case varintType:
		f.number, n = consumeVarint(rest)
	case fixed64Type:
		f.number, n = protowire.ConsumeFixed64(rest)
	case bytesType:
		var length uint64
		if length, n = consumeVarint(rest); n < 0 || length > uint64(len(rest)-n) {
			return false
		}
		rest = rest[n:]
		f.bytes, n = rest[:length], int(length)
	default:
		n = protowire.ConsumeFieldValue(f.num, f.kind, rest)
	}
	if n < 0 {
		return false
	}
	f.rest = rest[n:]
	return true
}

func (f *fields) is(num protowire.Number, kind protowire.Type) bool {
	return f.num == num && f.kind == kind
}

// complete reports whether no malformed bytes are left after the last field.
func (f *fields) complete() bool { return len(f.rest) == 0 }

// consumeVarint is protowire.ConsumeVarint, with a shortcut for one byte.
func consumeVarint(b []byte) (number uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return protowire.ConsumeVarint(b)
}

// openMessage appends the tag of a length-delimited field whose length is not
// known yet. Pass start to closeMessage once the content is appended.
func openMessage(dst []byte, num protowire.Number) (opened []byte, start int) {
	dst = protowire.AppendTag(dst, num, bytesType)
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
