// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// minDigits is the shortest prefix of an ID that is worth a search.
const minDigits = 6

// digits of a whole trace ID.
const traceDigits = 32

// ID is a trace or span ID, or the beginning of one.
type ID struct {
	text  string
	bytes []byte // of the digits in pairs
	half  bool   // the last byte has one digit, in its upper half
}

// ParseID parses hexadecimal digits.
func ParseID(text string) (ID, error) {
	id := ID{text: strings.ToLower(text), half: len(text)%2 == 1}
	even := id.text
	if id.half {
		even += "0"
	}
	var err error
	if id.bytes, err = hex.DecodeString(even); err != nil || len(text) < minDigits || len(text) > traceDigits {
		return ID{}, fmt.Errorf("%q is no ID; give a trace or span ID in hexadecimal, or at least its first %d digits", text, minDigits)
	}
	return id, nil
}

// begins reports whether an ID begins with these digits.
func (id *ID) begins(whole []byte) bool {
	if len(id.bytes) > len(whole) {
		return false
	}
	last := len(id.bytes) - 1
	for i := range last {
		if whole[i] != id.bytes[i] {
			return false
		}
	}
	if id.half {
		return whole[last]&0xf0 == id.bytes[last]
	}
	return whole[last] == id.bytes[last]
}

// isWhole reports whether only one trace can have the ID.
func (id *ID) isWhole() bool { return len(id.text) == traceDigits }
