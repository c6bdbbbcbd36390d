// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "fmt"

// maxDescribed limits the bytes of a number in an error.
const maxDescribed = 32

// describe returns what a value is, for an error: numbers and booleans as sent, and only the length
// of a string, which may be text of a prompt.
func (v *jsonValue) describe() string {
	switch v.kind {
	case '"':
		return fmt.Sprintf("a %d-byte string", len(v.raw)-len(`""`))
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	if len(v.raw) > maxDescribed {
		return string(v.raw[:maxDescribed]) + "..."
	}
	return string(v.raw)
}
