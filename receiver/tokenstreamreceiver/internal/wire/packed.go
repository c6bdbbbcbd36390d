// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// packed is a repeated varint field. A single packed run, the usual form, is read
// in place; other forms are joined in buffer.
type packed struct {
	bytes  []byte
	buffer []byte
}

func (p *packed) add(f field) {
	switch {
	case f.kind == protowire.BytesType && len(p.bytes) == 0:
		p.bytes = f.bytes
		return
	case f.kind != protowire.BytesType && f.kind != protowire.VarintType:
		return // protobuf treats a wrong wire type as an unknown field
	}
	if len(p.buffer) == 0 {
		p.buffer = append(p.buffer, p.bytes...)
	}
	if f.kind == protowire.BytesType {
		p.buffer = append(p.buffer, f.bytes...)
	} else {
		p.buffer = protowire.AppendVarint(p.buffer, f.number)
	}
	p.bytes = p.buffer
}

// count returns the number of varints. ok is false if one of them is malformed.
func (p *packed) count() (count int, ok bool) {
	count, length, rest := countShort(p.bytes)
	for _, b := range rest {
		length++
		switch {
		case b < 0x80 && (length < binary.MaxVarintLen64 || length == binary.MaxVarintLen64 && b <= 1):
			count, length = count+1, 0
		case length >= binary.MaxVarintLen64:
			return 0, false
		}
	}
	return count, length == 0
}

// countShort counts varints eight bytes at a time while every four bytes contain
// the end of one, which bounds their length. rest is the bytes not counted, and
// length how many bytes before rest belong to its first varint.
func countShort(b []byte) (count, length int, rest []byte) {
	const continued = 0x8080808080808080 // the top bit of each byte
	for ; len(b) >= 8; b = b[8:] {
		ends := ^binary.LittleEndian.Uint64(b) & continued
		if uint32(ends) == 0 || ends>>32 == 0 {
			break
		}
		count += bits.OnesCount64(ends)
		length = bits.LeadingZeros64(ends) / 8
	}
	return count, length, b
}
