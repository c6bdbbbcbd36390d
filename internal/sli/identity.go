package sli

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// MaxLabelLength is the longest value of a dimension, in bytes. Longer ones are
// cut off, as what tells series apart is rarely that long and a label that is
// costs memory in every system downstream.
const MaxLabelLength = 256

// appendKey appends the identity of a request's series: each value, cleaned,
// after its length. Two requests share a series when their keys are equal.
func appendKey(key []byte, r *Request) []byte {
	for _, v := range r.Dimensions {
		key = appendValue(key, v)
	}
	return appendValue(key, r.Vantage)
}

func appendValue(key []byte, v string) []byte {
	v = clean(v)
	key = binary.AppendUvarint(key, uint64(len(v)))
	return append(key, v...)
}

// identity reads a key back: the dimensions, and the vantage.
func identity(key string) (dimensions []string, vantage string) {
	for len(key) > 0 {
		length, n := binary.Uvarint([]byte(key[:min(len(key), binary.MaxVarintLen16)]))
		dimensions = append(dimensions, key[n:n+int(length)])
		key = key[n+int(length):]
	}
	last := len(dimensions) - 1
	return dimensions[:last], dimensions[last]
}

// clean makes v a label value: valid UTF-8, at most MaxLabelLength bytes.
func clean(v string) string {
	if len(v) > MaxLabelLength {
		end := MaxLabelLength
		for end > MaxLabelLength-utf8.UTFMax && !utf8.RuneStart(v[end]) {
			end--
		}
		v = v[:end]
	}
	if utf8.ValidString(v) {
		return v
	}
	// Each bad byte would become three: a replacement of one byte keeps the bound.
	return strings.ToValidUTF8(v, "?")
}
