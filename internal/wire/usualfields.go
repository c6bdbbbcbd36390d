// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// usualFields reads a message in the usual encoding, with tags of one byte, field by field. It is
// several times faster than fields, and has no fields at all of any other message.
type usualFields struct {
	rest   []byte
	failed bool
}

// Wire types, for tags in a switch.
const (
	varintType  = byte(protowire.VarintType)
	fixed64Type = byte(protowire.Fixed64Type)
	bytesType   = byte(protowire.BytesType)
)

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

func (u *usualFields) fixed64() uint64 {
	if len(u.rest) < 8 {
		u.fail()
		return 0
	}
	number := binary.LittleEndian.Uint64(u.rest)
	u.rest = u.rest[8:]
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
