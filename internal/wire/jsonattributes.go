// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendObject appends the members of a valid JSON object to a KeyValueList, in the
// mapping of OpenTelemetry: integers stay integers, other numbers become doubles and
// null becomes an empty value.
func appendObject(list, text []byte, scratch *[]byte, depth int) ([]byte, error) {
	count := 0
	for o := openTrusted(text); o.next(); count++ {
		key, ok := o.key.unquote(scratch)
		if !ok {
			return list, malformed("an attribute's key is not valid JSON")
		}
		var start int
		list, start = openMessage(list, keyValueListValues)
		list = protowire.AppendTag(list, keyValueKey, protowire.BytesType)
		list = protowire.AppendBytes(list, key)
		var err error
		if list, err = appendJSON(list, keyValueValue, &o.value, scratch, depth+1); err != nil {
			return list, err
		}
		list = closeMessage(list, start)
	}
	return list, checkNumber(count)
}

// appendJSON appends a JSON value as a field that is an AnyValue.
func appendJSON(dst []byte, num protowire.Number, v *jsonValue, scratch *[]byte, depth int) ([]byte, error) {
	if depth > maxAttributeDepth {
		return dst, errAttributeTooNested
	}
	dst, start := openMessage(dst, num)
	var err error
	switch v.kind {
	case '"':
		text, ok := v.unquote(scratch)
		if !ok {
			return dst, malformed("an attribute's value is not valid JSON")
		}
		dst = appendScalar(dst, &Value{Kind: StringValue, Bytes: text})
	case 't', 'f':
		dst = appendScalar(dst, &Value{Kind: BoolValue, Bits: protowire.EncodeBool(v.kind == 't')})
	case '0':
		dst = appendScalar(dst, numberValue(v.raw))
	case '{':
		var nested int
		dst, nested = openMessage(dst, MapValue)
		if dst, err = appendObject(dst, v.raw, scratch, depth+1); err != nil {
			return dst, err
		}
		dst = closeMessage(dst, nested)
	case '[':
		var nested int
		dst, nested = openMessage(dst, ArrayValue)
		count := 0
		for array := openArray(v.raw); array.element(); count++ {
			if dst, err = appendJSON(dst, arrayValues, &array.value, scratch, depth+2); err != nil {
				return dst, err
			}
		}
		dst, err = closeMessage(dst, nested), checkNumber(count)
	}
	return closeMessage(dst, start), err
}

func numberValue(number []byte) *Value {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return &Value{Kind: IntValue, Bits: uint64(n)}
	}
	double, _ := strconv.ParseFloat(string(number), 64) // infinite if out of range
	return &Value{Kind: DoubleValue, Bits: math.Float64bits(double)}
}
