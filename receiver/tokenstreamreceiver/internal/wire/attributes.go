// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of OTLP's resource.proto.
const (
	resourceAttributes = 1
	resourceEntityRefs = 3
)

// Limits of attributes. Lookup by key is linear, so lists are short.
const (
	maxAttributes     = 1024 // entries of one list
	maxAttributeDepth = 64   // nesting of values
)

var (
	errTooManyAttributes  = invalid("more than %d attributes in one list; send fewer", maxAttributes)
	errAttributeTooNested = invalid("an attribute is nested more than %d deep; send a flatter value", maxAttributeDepth)
)

// CountAttributes returns the number of attributes in a well-formed KeyValueList.
func CountAttributes(list []byte) (count int) {
	f := fieldsOf(list)
	for f.next() {
		count++
	}
	return count
}

func checkCount(list []byte) error { return checkNumber(CountAttributes(list)) }

func checkNumber(count int) error {
	if count > maxAttributes {
		return errTooManyAttributes
	}
	return nil
}

// appendResource appends the attributes of a Resource to a KeyValueList.
func appendResource(list, resource []byte) ([]byte, error) {
	f := fieldsOf(resource)
	for f.next() {
		var err error
		switch {
		case f.is(resourceAttributes, bytesType):
			list, err = appendKeyValue(list, f.bytes)
		case f.is(resourceEntityRefs, bytesType):
			err = checkEntityRef(f.bytes)
		}
		if err != nil {
			return list, err
		}
	}
	return list, f.truncated("resource")
}

// appendKeyValue appends a KeyValue to a KeyValueList if it is well-formed.
func appendKeyValue(list, keyValue []byte) ([]byte, error) {
	if err := checkKeyValue(keyValue, 0); err != nil {
		return list, err
	}
	list = protowire.AppendTag(list, keyValueListValues, bytesType)
	return protowire.AppendBytes(list, keyValue), nil
}

func checkKeyValue(message []byte, depth int) error {
	if key, text, ok := usualText(message); ok && depth < maxAttributeDepth && utf8.Valid(key) && utf8.Valid(text) {
		return nil
	}
	f := fieldsOf(message)
	for f.next() {
		switch {
		case f.is(keyValueKey, bytesType) && !utf8.Valid(f.bytes):
			return errUTF8("an attribute's key")
		case f.is(keyValueValue, bytesType):
			if err := checkValue(f.bytes, depth+1); err != nil {
				return err
			}
		}
	}
	return f.truncated("an attribute")
}

func checkValue(message []byte, depth int) error {
	if depth > maxAttributeDepth {
		return errAttributeTooNested
	}
	f := fieldsOf(message)
	for f.next() {
		var err error
		switch {
		case f.kind != bytesType:
		case f.num == StringValue && !utf8.Valid(f.bytes):
			err = errUTF8("an attribute's value")
		case f.num == ArrayValue:
			err = checkRepeated(f.bytes, depth, checkValue)
		case f.num == MapValue:
			err = checkRepeated(f.bytes, depth, checkKeyValue)
		}
		if err != nil {
			return err
		}
	}
	return f.truncated("an attribute's value")
}

// checkRepeated checks the elements of an ArrayValue or a KeyValueList. Both have
// them in field 1.
func checkRepeated(message []byte, depth int, check func([]byte, int) error) error {
	count := 0
	f := fieldsOf(message)
	for f.next() {
		if f.is(arrayValues, bytesType) {
			count++
			if err := check(f.bytes, depth+1); err != nil {
				return err
			}
		}
	}
	if err := f.truncated("an attribute's value"); err != nil {
		return err
	}
	return checkNumber(count)
}

// checkEntityRef checks a message of strings. The receiver ignores its content.
func checkEntityRef(message []byte) error {
	f := fieldsOf(message)
	for f.next() {
		if f.kind == bytesType && f.num <= 4 && !utf8.Valid(f.bytes) {
			return errUTF8("an entity reference")
		}
	}
	return f.truncated("an entity reference")
}
