package sli

import (
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

func appendValue(key []byte, v string) []byte { return appendBytes(key, clean(v)) }

// identity reads a key back: the dimensions, and the vantage.
func identity(key string) (dimensions []string, vantage string) {
	values, _ := valuesOf(key)
	last := len(values) - 1
	return values[:last], values[last]
}

// valuesOf returns the values of a key, and whether it is one.
func valuesOf(key string) (values []string, whole bool) {
	for rest := []byte(key); len(rest) > 0; {
		var v []byte
		if v, rest, whole = cutBytes(rest); !whole {
			return nil, false
		}
		values = append(values, string(v))
	}
	return values, true
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
