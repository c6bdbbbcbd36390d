// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of OTLP's common.proto. Those of AnyValue are the ValueKinds.
const (
	keyValueListValues = 1
	keyValueKey        = 1
	keyValueValue      = 2

	arrayValues = 1
)

// ValueKind is the type of an attribute value: the number of the field that is set
// in its AnyValue.
type ValueKind = protowire.Number

// The kinds of values. An EmptyValue has no field set.
const (
	EmptyValue ValueKind = iota
	StringValue
	BoolValue
	IntValue
	DoubleValue
	ArrayValue
	MapValue
	BytesValue
)

// Value is an OTLP attribute value. Arrays and maps stay encoded: walk them with
// Elements and with WalkAttributes(v.Bytes).
type Value struct {
	Kind  ValueKind
	Bits  uint64 // a boolean, an integer or the bits of a double
	Bytes []byte // a string, bytes, or an encoded ArrayValue or KeyValueList
}

// Attributes walks over an encoded KeyValueList:
//
//	a := WalkAttributes(list)
//	for a.Next() {
//		use(a.Key, a.Value)
//	}
//
// It ends at malformed bytes. Declare it before the loop, like fields.
type Attributes struct {
	Key   []byte
	Value Value
	fields
}

// WalkAttributes starts a walk over the attributes of a KeyValueList.
func WalkAttributes(list []byte) Attributes { return Attributes{fields: fieldsOf(list)} }

// Next moves to the next attribute and reports whether there is one.
func (a *Attributes) Next() bool {
	if n := usualLength(a.rest, keyValueListValues<<3|bytesType); n > 0 { // fast path
		a.Key, a.Value = readKeyValue(a.rest[2:n])
		a.rest = a.rest[n:]
		return true
	}
	for a.next() {
		if a.is(keyValueListValues, bytesType) {
			a.Key, a.Value = readKeyValue(a.bytes)
			return true
		}
	}
	return false
}

// Elements walks over the elements of an array like Attributes over a KeyValueList.
type Elements struct {
	Value Value
	fields
}

// Elements starts a walk over the elements of an array. Other kinds of values have
// none.
func (v *Value) Elements() Elements {
	if v.Kind != ArrayValue {
		return Elements{}
	}
	return Elements{fields: fieldsOf(v.Bytes)}
}

// Next moves to the next element and reports whether there is one.
func (e *Elements) Next() bool {
	for e.next() {
		if e.is(arrayValues, bytesType) {
			e.Value = Value{}
			e.Value.read(e.bytes)
			return true
		}
	}
	return false
}

func readKeyValue(message []byte) (key []byte, value Value) {
	if key, text, ok := usualText(message); ok {
		return key, Value{Kind: StringValue, Bytes: text}
	}
	f := fieldsOf(message)
	for f.next() {
		switch {
		case f.is(keyValueKey, bytesType):
			key = f.bytes
		case f.is(keyValueValue, bytesType):
			value.read(f.bytes)
		}
	}
	return key, value
}

// read reads an encoded AnyValue. If several fields are set, the last one wins.
func (v *Value) read(message []byte) {
	f := fieldsOf(message)
	for f.next() {
		var known bool
		switch f.num {
		case StringValue, ArrayValue, MapValue, BytesValue:
			known = f.kind == bytesType
		case BoolValue, IntValue:
			known = f.kind == varintType
		case DoubleValue:
			known = f.kind == fixed64Type
		}
		if known {
			*v = Value{Kind: f.num, Bits: f.number, Bytes: f.bytes}
		}
	}
}
