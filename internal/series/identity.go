package series

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

// Identity is what tells a series from others.
type Identity struct {
	// Dimensions holds the values of the configured dimensions in their order,
	// empty where the series has none. The overflow series has no dimensions.
	Dimensions []string
	Vantage    string
	// Overflow marks the series that holds what was over the limit.
	Overflow bool
}

// IdentityOf returns the identity that a key of the engine stands for, and an empty
// one for what is none.
func IdentityOf(key string) Identity {
	if key == overflowKey {
		return Identity{Overflow: true}
	}
	values, whole := valuesOf(key)
	if !whole {
		return Identity{}
	}
	last := len(values) - 1
	return Identity{Dimensions: values[:last], Vantage: values[last]}
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
