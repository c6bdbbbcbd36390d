// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "google.golang.org/protobuf/encoding/protowire"

// packed is a repeated varint field. A single packed run, the usual form, is read
// in place; other forms are joined in buffer.
type packed struct {
	bytes  []byte
	buffer []byte
}

func (p *packed) add(f *fields) {
	switch {
	case f.kind == bytesType && len(p.bytes) == 0:
		p.bytes = f.bytes
		return
	case f.kind != bytesType && f.kind != varintType:
		return // protobuf treats a wrong wire type as an unknown field
	}
	if len(p.buffer) == 0 {
		p.buffer = append(p.buffer, p.bytes...)
	}
	if f.kind == bytesType {
		p.buffer = append(p.buffer, f.bytes...)
	} else {
		p.buffer = protowire.AppendVarint(p.buffer, f.number)
	}
	p.bytes = p.buffer
}

// count returns the number of varints. ok is false if one of them is malformed.
func (p *packed) count() (count int, ok bool) {
	for rest := p.bytes; len(rest) > 0; count++ {
		_, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return 0, false
		}
		rest = rest[n:]
	}
	return count, true
}
