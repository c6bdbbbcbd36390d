// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"math"
	"strconv"
)

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

// describe returns what a value is, like that of a jsonValue.
func (v *Value) describe() string {
	switch v.Kind {
	case StringValue:
		return fmt.Sprintf("a %d-byte string", len(v.Bytes))
	case BoolValue:
		return strconv.FormatBool(v.Bits != 0)
	case IntValue:
		return strconv.FormatInt(int64(v.Bits), 10)
	case DoubleValue:
		return strconv.FormatFloat(math.Float64frombits(v.Bits), 'g', -1, 64)
	case ArrayValue:
		return "an array"
	case MapValue:
		return "a map"
	case BytesValue:
		return fmt.Sprintf("%d bytes", len(v.Bytes))
	default:
		return "empty"
	}
}
