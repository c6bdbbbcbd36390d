package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of OTLP's common.proto and resource.proto.
const (
	resourceAttributes = 1
	resourceEntityRefs = 3

	keyValueListValues = 1
	keyValueKey        = 1
	keyValueValue      = 2

	anyString   = 1
	anyBool     = 2
	anyInt      = 3
	anyDouble   = 4
	anyArray    = 5
	anyKeyValue = 6
	anyBytes    = 7

	arrayValues = 1
)

// maxDepth bounds how deep attribute values are nested.
const maxDepth = 64

// maxAttributes bounds the attributes in one list. They are looked up one by one.
const maxAttributes = 1024

// checkCount checks how many attributes a well-formed KeyValueList has.
func checkCount(list []byte) error {
	count := 0
	for range fields(&list) {
		count++
	}
	return checkNumber(count)
}

func checkNumber(count int) error {
	if count > maxAttributes {
		return invalid("more than %d attributes in one list", maxAttributes)
	}
	return nil
}

// appendResource appends a Resource's attributes to a KeyValueList.
func appendResource(list, resource []byte) ([]byte, error) {
	for f := range fields(&resource) {
		var err error
		switch {
		case f.is(resourceAttributes, protowire.BytesType):
			list, err = appendKeyValue(list, f.bytes)
		case f.is(resourceEntityRefs, protowire.BytesType):
			err = checkEntityRef(f.bytes)
		}
		if err != nil {
			return list, err
		}
	}
	return list, truncated(resource, "resource")
}

// appendKeyValue appends a KeyValue to a KeyValueList, once it is known to be
// well-formed.
func appendKeyValue(list, keyValue []byte) ([]byte, error) {
	if err := checkKeyValue(keyValue, 0); err != nil {
		return list, err
	}
	list = protowire.AppendTag(list, keyValueListValues, protowire.BytesType)
	return protowire.AppendBytes(list, keyValue), nil
}

func checkKeyValue(message []byte, depth int) error {
	for f := range fields(&message) {
		switch {
		case f.is(keyValueKey, protowire.BytesType) && !utf8.Valid(f.bytes):
			return errUTF8("an attribute's key")
		case f.is(keyValueValue, protowire.BytesType):
			if err := checkValue(f.bytes, depth+1); err != nil {
				return err
			}
		}
	}
	return truncated(message, "an attribute")
}

func checkValue(message []byte, depth int) error {
	if depth > maxDepth {
		return invalid("an attribute is nested more than %d deep", maxDepth)
	}
	for f := range fields(&message) {
		var err error
		switch {
		case f.is(anyString, protowire.BytesType) && !utf8.Valid(f.bytes):
			err = errUTF8("an attribute's value")
		case f.is(anyArray, protowire.BytesType):
			err = checkRepeated(f.bytes, depth, checkValue)
		case f.is(anyKeyValue, protowire.BytesType):
			err = checkRepeated(f.bytes, depth, checkKeyValue)
		}
		if err != nil {
			return err
		}
	}
	return truncated(message, "an attribute's value")
}

// checkRepeated checks an ArrayValue or a KeyValueList, whose only field is 1.
func checkRepeated(message []byte, depth int, check func([]byte, int) error) error {
	count := 0
	for f := range fields(&message) {
		if f.is(arrayValues, protowire.BytesType) {
			count++
			if err := check(f.bytes, depth+1); err != nil {
				return err
			}
		}
	}
	if err := truncated(message, "an attribute's value"); err != nil {
		return err
	}
	return checkNumber(count)
}

// checkEntityRef checks a message of strings that nothing reads.
func checkEntityRef(message []byte) error {
	for f := range fields(&message) {
		if f.kind == protowire.BytesType && f.num <= 4 && !utf8.Valid(f.bytes) {
			return errUTF8("an entity reference")
		}
	}
	return truncated(message, "an entity reference")
}
