// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// The decoders of pdata recur for each value within a value, until the stack ends the process.
const (
	// maxDepth bounds how deep the fields of a large message are nested.
	maxDepth = 1000
	// shallowBytes is the size of a message whose values fit into the stack however they are nested.
	shallowBytes = 4 << 20
)

var errTooDeep = errors.New("the message has attributes within attributes that are too deep")

// isTooDeep reports whether fields of a message in protobuf are nested deeper than levels.
func isTooDeep(message []byte, levels int) bool {
	if levels < 0 {
		return true
	}
	for len(message) > 2*levels { // a level has a tag and a length
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		content, _ := protowire.ConsumeBytes(message)
		if kind == protowire.BytesType && isTooDeep(content, levels-1) { // or text, which may be like a message
			return true
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return false
		}
		message = message[n:]
	}
	return false
}
