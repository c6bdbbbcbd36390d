package wire

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendObject appends a valid JSON object to a KeyValueList, as OpenTelemetry
// maps JSON: integers stay integers, other numbers are doubles, null is an empty
// value.
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
		if list, err = appendAny(list, keyValueValue, &o.value, scratch, depth+1); err != nil {
			return list, err
		}
		list = closeMessage(list, start)
	}
	return list, checkNumber(count)
}

// appendAny appends a field that is an AnyValue.
func appendAny(dst []byte, num protowire.Number, v *value, scratch *[]byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, invalid("an attribute is nested more than %d deep", maxDepth)
	}
	dst, start := openMessage(dst, num)
	var err error
	switch v.kind {
	case '"':
		text, ok := v.unquote(scratch)
		if !ok {
			return dst, malformed("an attribute's value is not valid JSON")
		}
		dst = protowire.AppendTag(dst, anyString, protowire.BytesType)
		dst = protowire.AppendBytes(dst, text)
	case 't', 'f':
		dst = protowire.AppendTag(dst, anyBool, protowire.VarintType)
		dst = protowire.AppendVarint(dst, protowire.EncodeBool(v.kind == 't'))
	case '0':
		dst = appendNumber(dst, v.raw)
	case '{':
		var nested int
		dst, nested = openMessage(dst, anyKeyValue)
		if dst, err = appendObject(dst, v.raw, scratch, depth+1); err != nil {
			return dst, err
		}
		dst = closeMessage(dst, nested)
	case '[':
		var nested int
		dst, nested = openMessage(dst, anyArray)
		count := 0
		for array := (object{text: v.raw, at: 1, trusted: true}); array.element(); count++ {
			if dst, err = appendAny(dst, arrayValues, &array.value, scratch, depth+2); err != nil {
				return dst, err
			}
		}
		dst, err = closeMessage(dst, nested), checkNumber(count)
	}
	return closeMessage(dst, start), err
}

func appendNumber(dst, number []byte) []byte {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		dst = protowire.AppendTag(dst, anyInt, protowire.VarintType)
		return protowire.AppendVarint(dst, uint64(n))
	}
	double, _ := strconv.ParseFloat(string(number), 64) // infinite when out of range
	dst = protowire.AppendTag(dst, anyDouble, protowire.Fixed64Type)
	return protowire.AppendFixed64(dst, math.Float64bits(double))
}

// openMessage starts a length-delimited field whose length is not known yet.
func openMessage(dst []byte, num protowire.Number) (opened []byte, start int) {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return dst, len(dst)
}

// closeMessage puts the length in front of what was appended since start.
func closeMessage(dst []byte, start int) []byte {
	length := len(dst) - start
	prefix := protowire.SizeVarint(uint64(length))
	for range prefix {
		dst = append(dst, 0)
	}
	copy(dst[start+prefix:], dst[start:start+length])
	protowire.AppendVarint(dst[:start], uint64(length))
	return dst
}
