// Package wire reads what services tell about their token streams, in any
// of the formats of the wire contract, into an assembly.Batch. It reads bytes
// and checks their form; whether an event makes sense is the batch's to say.
//
// No format has a place for text, and none is kept: fields that are not known
// are skipped, and error messages name fields and positions, never values.
package wire

import (
	"github.com/tokenpulse/tokenpulse/internal/assembly"
)

// Reject is told of each unit of a request (a line, or a token_stream) that
// cannot be taken. line is zero where there are no lines, id is empty where it
// is not known.
type Reject func(line int, id string, err error)

func malformed(format string, args ...any) error {
	return assembly.Errorf(assembly.Malformed, format, args...)
}

func invalid(format string, args ...any) error {
	return assembly.Errorf(assembly.Invalid, format, args...)
}

// copyID checks and copies a trace or span id. No bytes at all mean that there
// is none.
func copyID(dst, id []byte, field string) error {
	if len(id) == 0 {
		return nil
	}
	if len(id) != len(dst) {
		return invalid("%s has %d bytes, not %d (%d hexadecimal digits)", field, len(id), len(dst), 2*len(dst))
	}
	copy(dst, id)
	for _, b := range id {
		if b != 0 {
			return nil
		}
	}
	return invalid("%s is all zeros: leave it out if there is none", field)
}
