// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Encoders differ in the order of fields. The canonical encoding is the key, then
// the value with one field set. Equal attributes from OTLP/JSON, OTLP protobuf and
// NDJSON then have equal bytes, and streams the same derived span IDs.

// appendAttributes appends the attributes of an encoded KeyValueList to another one
// in canonical encoding.
func appendAttributes(list, encoded []byte, depth int) ([]byte, error) {
	count := 0
	for a := WalkAttributes(encoded); a.Next(); {
		count++
		if err := checkNumber(count); err != nil {
			return list, err
		}
		var err error
		if list, err = appendAttribute(list, a.Key, &a.Value, depth); err != nil {
			return list, err
		}
	}
	return list, nil
}

// appendAttribute appends an attribute to a KeyValueList.
func appendAttribute(list, key []byte, value *Value, depth int) ([]byte, error) {
	if !utf8.Valid(key) {
		return list, errUTF8("an attribute's key")
	}
	list, start := openMessage(list, keyValueListValues)
	list = protowire.AppendTag(list, keyValueKey, protowire.BytesType)
	list = protowire.AppendBytes(list, key)
	list, err := appendValue(list, keyValueValue, value, depth+1)
	return closeMessage(list, start), err
}

// appendValue appends a field that is an AnyValue.
func appendValue(dst []byte, num protowire.Number, value *Value, depth int) ([]byte, error) {
	if depth > maxAttributeDepth {
		return dst, errAttributeTooNested
	}
	if value.Kind == StringValue && !utf8.Valid(value.Bytes) {
		return dst, errUTF8("an attribute's value")
	}
	dst, start := openMessage(dst, num)
	var err error
	switch value.Kind {
	case ArrayValue:
		var nested int
		dst, nested = openMessage(dst, ArrayValue)
		dst, err = appendElements(dst, value, depth+1)
		dst = closeMessage(dst, nested)
	case MapValue:
		var nested int
		dst, nested = openMessage(dst, MapValue)
		dst, err = appendAttributes(dst, value.Bytes, depth+1)
		dst = closeMessage(dst, nested)
	default:
		dst = appendScalar(dst, value)
	}
	return closeMessage(dst, start), err
}

func appendElements(dst []byte, array *Value, depth int) ([]byte, error) {
	count := 0
	for e := array.Elements(); e.Next(); {
		count++
		if err := checkNumber(count); err != nil {
			return dst, err
		}
		var err error
		if dst, err = appendValue(dst, arrayValues, &e.Value, depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendScalar appends the field of a value that is neither an array nor a map.
func appendScalar(dst []byte, value *Value) []byte {
	switch value.Kind {
	case StringValue, BytesValue:
		dst = protowire.AppendTag(dst, value.Kind, protowire.BytesType)
		return protowire.AppendBytes(dst, value.Bytes)
	case BoolValue:
		dst = protowire.AppendTag(dst, BoolValue, protowire.VarintType)
		return protowire.AppendVarint(dst, min(value.Bits, 1))
	case IntValue:
		dst = protowire.AppendTag(dst, IntValue, protowire.VarintType)
		return protowire.AppendVarint(dst, value.Bits)
	case DoubleValue:
		dst = protowire.AppendTag(dst, DoubleValue, protowire.Fixed64Type)
		return protowire.AppendFixed64(dst, value.Bits)
	default:
		return dst
	}
}
