// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
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
			return list, malformed("an attribute's key is not a valid JSON string; encode it as UTF-8")
		}
		var start int
		list, start = openMessage(list, keyValueListValues)
		list = protowire.AppendTag(list, keyValueKey, bytesType)
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
	if !v.isNested() {
		value, ok := v.scalar(scratch)
		if !ok {
			return dst, malformed("an attribute's value is not a valid JSON string; encode it as UTF-8")
		}
		return appendScalar(dst, num, &value), nil
	}
	dst, start := openMessage(dst, num)
	var nested int
	var err error
	if v.kind == '{' {
		dst, nested = openMessage(dst, MapValue)
		dst, err = appendObject(dst, v.raw, scratch, depth+1)
	} else {
		dst, nested = openMessage(dst, ArrayValue)
		count := 0
		for array := openArray(v.raw); err == nil && array.element(); count++ {
			dst, err = appendJSON(dst, arrayValues, &array.value, scratch, depth+2)
		}
		err = cmp.Or(err, checkNumber(count))
	}
	if err != nil {
		return dst, err
	}
	return closeMessage(closeMessage(dst, nested), start), nil
}

// appendScalar appends a field that is an AnyValue without elements.
func appendScalar(dst []byte, num protowire.Number, value *Value) []byte {
	dst, start := openMessage(dst, num)
	switch value.Kind {
	case StringValue:
		dst = protowire.AppendTag(dst, StringValue, bytesType)
		dst = protowire.AppendBytes(dst, value.Bytes)
	case BoolValue, IntValue:
		dst = protowire.AppendTag(dst, value.Kind, varintType)
		dst = protowire.AppendVarint(dst, value.Bits)
	case DoubleValue:
		dst = protowire.AppendTag(dst, DoubleValue, fixed64Type)
		dst = protowire.AppendFixed64(dst, value.Bits)
	}
	return closeMessage(dst, start)
}

// scalar returns a string, number, boolean or null as an attribute value. ok is false
// for invalid strings.
func (v *jsonValue) scalar(scratch *[]byte) (value Value, ok bool) {
	switch v.kind {
	case '"':
		value.Kind = StringValue
		value.Bytes, ok = v.unquote(scratch)
		return value, ok
	case 't', 'f':
		return Value{Kind: BoolValue, Bits: protowire.EncodeBool(v.kind == 't')}, true
	case '0':
		return numberValue(v.raw), true
	default:
		return Value{}, true
	}
}

func numberValue(number []byte) Value {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return Value{Kind: IntValue, Bits: uint64(n)}
	}
	double, _ := strconv.ParseFloat(string(number), 64) // infinite if out of range
	return Value{Kind: DoubleValue, Bits: math.Float64bits(double)}
}
