// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "google.golang.org/protobuf/encoding/protowire"

// Encoders differ in the order of fields. The canonical encoding is the key, then
// the value with one field set. Equal attributes from OTLP/JSON, OTLP protobuf and
// NDJSON then have equal bytes, and streams the same derived span IDs.

// appendAttributes appends the attributes of an encoded KeyValueList to another one,
// in canonical encoding.
func appendAttributes(list, encoded []byte) (_ []byte, err error) {
	if err := checkCount(encoded); err != nil {
		return list, err
	}
	f := fieldsOf(encoded)
	for f.next() {
		if !f.is(keyValueListValues, bytesType) {
			continue
		}
		if list, err = appendCanonical(list, f.bytes); err != nil {
			return list, err
		}
	}
	return list, nil
}

// appendCanonical appends a KeyValue to a KeyValueList, in canonical encoding, if it
// is well-formed.
func appendCanonical(list, keyValue []byte) ([]byte, error) {
	if err := checkKeyValue(keyValue, 0); err != nil {
		return list, err
	}
	key, value := readKeyValue(keyValue)
	return appendAttribute(list, key, &value), nil
}

// appendAttribute appends an attribute to a KeyValueList.
func appendAttribute(list, key []byte, value *Value) []byte {
	list, start := openMessage(list, keyValueListValues)
	list = protowire.AppendTag(list, keyValueKey, bytesType)
	list = protowire.AppendBytes(list, key)
	return closeMessage(appendValue(list, keyValueValue, value), start)
}

// appendValue appends a field that is an AnyValue.
func appendValue(dst []byte, num protowire.Number, value *Value) []byte {
	dst, start := openMessage(dst, num)
	switch value.Kind {
	case StringValue, BytesValue:
		dst = protowire.AppendTag(dst, value.Kind, bytesType)
		dst = protowire.AppendBytes(dst, value.Bytes)
	case BoolValue:
		dst = protowire.AppendTag(dst, BoolValue, varintType)
		dst = protowire.AppendVarint(dst, min(value.Bits, 1))
	case IntValue:
		dst = protowire.AppendTag(dst, IntValue, varintType)
		dst = protowire.AppendVarint(dst, value.Bits)
	case DoubleValue:
		dst = protowire.AppendTag(dst, DoubleValue, fixed64Type)
		dst = protowire.AppendFixed64(dst, value.Bits)
	case ArrayValue:
		opened, nested := openMessage(dst, ArrayValue)
		e := value.Elements()
		for e.Next() {
			opened = appendValue(opened, arrayValues, &e.Value)
		}
		dst = closeMessage(opened, nested)
	case MapValue:
		opened, nested := openMessage(dst, MapValue)
		a := WalkAttributes(value.Bytes)
		for a.Next() {
			opened = appendAttribute(opened, a.Key, &a.Value)
		}
		dst = closeMessage(opened, nested)
	}
	return closeMessage(dst, start)
}
