// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A value is the text of a JSON value that is known to be valid, without blanks around
// it. The zero value stands for a missing one. Reading it does not allocate.
type value []byte

// lenient accepts what providers send: duplicate names and broken UTF-8 hide no structure.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// parse returns text as a value; ok is false if it is not JSON.
func parse(text []byte) (v value, ok bool) {
	text = bytes.TrimSpace(text)
	return text, jsontext.Value(text).IsValid(lenient...)
}

func (v value) isObject() bool { return len(v) > 0 && v[0] == '{' }
func (v value) isString() bool { return len(v) > 0 && v[0] == '"' }
func (v value) isTrue() bool   { return len(v) > 0 && v[0] == 't' }
func (v value) isFalse() bool  { return len(v) > 0 && v[0] == 'f' }
func (v value) isNull() bool   { return len(v) == 0 || v[0] == 'n' }

// hasText reports whether v is a string that is not empty.
func (v value) hasText() bool { return len(v) > 2 && v[0] == '"' }

// members walks over an object: for name, member := range v.members.
func (v value) members(yield func(name []byte, member value) bool) {
	if !v.isObject() {
		return
	}
	for i := skipBlanks(v, 1); v[i] != '}'; i = skipBlanks(v, i) {
		end := skipString(v, i)
		name := v[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name, _ = jsontext.AppendUnquote(nil, []byte(v[i:end]))
		}
		i = skipBlanks(v, skipBlanks(v, end)+1)
		end = skipValue(v, i)
		if !yield(name, v[i:end]) {
			return
		}
		if i = skipBlanks(v, end); v[i] == ',' {
			i++
		}
	}
}

// elements walks over an array: for element := range v.elements.
func (v value) elements(yield func(value) bool) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	for i := skipBlanks(v, 1); v[i] != ']'; i = skipBlanks(v, i) {
		end := skipValue(v, i)
		if !yield(v[i:end]) {
			return
		}
		if i = skipBlanks(v, end); v[i] == ',' {
			i++
		}
	}
}

// any reports whether an array has an element that passes the test.
func (v value) any(test func(value) bool) bool {
	for element := range v.elements {
		if test(element) {
			return true
		}
	}
	return false
}

// get returns the member with the name, or a missing value.
func (v value) get(name string) value {
	for n, member := range v.members {
		if string(n) == name {
			return member
		}
	}
	return nil
}

// path returns the member at the end of a path of names.
func (v value) path(names ...string) value {
	for _, name := range names {
		v = v.get(name)
	}
	return v
}

// len returns the number of elements of an array.
func (v value) len() (n int64) {
	for range v.elements {
		n++
	}
	return n
}

// is reports whether v is the string text, which must need no escape sequences.
func (v value) is(text string) bool {
	return len(v) == len(text)+2 && v[0] == '"' && string(v[1:len(v)-1]) == text
}

// raw returns the inside of a string, with its escape sequences. It is nil for other
// values.
func (v value) raw() []byte {
	if !v.isString() {
		return nil
	}
	return v[1 : len(v)-1]
}

// maxName bounds the identifiers that are kept: models, IDs, finish reasons, errors.
const maxName = 256

// name returns a string or a number as an identifier of at most maxName bytes. It is
// empty for other values.
func (v value) name() string { return string(v.appendName(nil)) }

// appendName appends the name to an empty slice.
func (v value) appendName(to []byte) []byte {
	switch {
	case v.isString():
		text, _ := jsontext.AppendUnquote(to, []byte(v[:min(len(v), 8*maxName)]))
		if len(text) > maxName {
			text = text[:maxName]
			for len(text) > 0 && !utf8.Valid(text) {
				text = text[:len(text)-1]
			}
		}
		return text
	case v.isNumber() && len(v) <= 32:
		return append(to, v...)
	default:
		return to
	}
}

func (v value) isNumber() bool {
	return len(v) > 0 && (v[0] == '-' || '0' <= v[0] && v[0] <= '9')
}

// float returns a number, or a number in a string.
func (v value) float() (float64, bool) {
	if v.isString() {
		v = v.raw()
	}
	if !v.isNumber() || len(v) > 32 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

// maxCount bounds the token counts that are believed.
const maxCount = 1 << 40

// count returns a number of tokens. Fractions, negative and absurd numbers are not counts.
func (v value) count() (int64, bool) {
	f, ok := v.float()
	if !ok || f < 0 || f > maxCount || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

func skipBlanks(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; ; i += 2 {
		n := bytes.IndexByte(b[i:], '"')
		if e := bytes.IndexByte(b[i:i+n], '\\'); e >= 0 {
			i += e
			continue
		}
		return i + n + 1
	}
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
	default:
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
}
