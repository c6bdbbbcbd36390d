// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// usualFields reads the fields of a message in the usual encoding, whose tags take one byte, at half the
// cost of fields. Callers leave messages with any other tag to fields. Like Attributes, it is declared
// before its loop.
type usualFields struct {
	rest   []byte
	failed bool
}

// noTag follows the last field. No valid field has it as its tag.
const noTag = 0

// tag reads the tag of the next field, whose content must be read next.
func (u *usualFields) tag() byte {
	if len(u.rest) == 0 {
		return noTag
	}
	tag := u.rest[0]
	if tag == noTag {
		u.failed = true
	}
	u.rest = u.rest[1:]
	return tag
}

// complete reports whether the message was read to its end.
func (u *usualFields) complete() bool { return len(u.rest) == 0 && !u.failed }

func (u *usualFields) fail() { u.rest, u.failed = nil, true }

func (u *usualFields) varint() uint64 {
	if len(u.rest) > 0 && u.rest[0] < 0x80 {
		number := u.rest[0]
		u.rest = u.rest[1:]
		return uint64(number)
	}
	return u.longVarint()
}

func (u *usualFields) longVarint() uint64 {
	number, n := protowire.ConsumeVarint(u.rest)
	if n < 0 {
		u.fail()
		return 0
	}
	u.rest = u.rest[n:]
	return number
}

func (u *usualFields) bytes() []byte {
	length := u.varint()
	if length > uint64(len(u.rest)) {
		u.fail()
		return nil
	}
	content := u.rest[:length]
	u.rest = u.rest[length:]
	return content
}

// usualText returns the key and the value of a KeyValue whose value is text, in the usual encoding: the
// key first, and lengths of one byte. ok is false for any other KeyValue. Without it, a stream of ten tokens
// with an attribute value of its own would cost a fifth more.
func usualText(message []byte) (key, text []byte, ok bool) {
	end := usualLength(message, keyValueKey<<3|bytesType)
	if end == 0 {
		return nil, nil, false
	}
	key, value := message[2:end], message[end:]
	if usualLength(value, keyValueValue<<3|bytesType) != len(value) || len(value) == 0 {
		return nil, nil, false
	}
	value = value[2:]
	if usualLength(value, byte(StringValue)<<3|bytesType) != len(value) || len(value) == 0 {
		return nil, nil, false
	}
	return key, value[2:], true
}

// usualLength returns the length of the first field of a message, if it has this tag and a length of one
// byte. Otherwise it returns 0.
func usualLength(message []byte, tag byte) int {
	if len(message) < 2 || message[0] != tag || message[1] >= 0x80 || 2+int(message[1]) > len(message) {
		return 0
	}
	return 2 + int(message[1])
}
