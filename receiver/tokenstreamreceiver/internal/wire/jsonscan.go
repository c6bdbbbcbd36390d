// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A JSON scanner for short objects that does not allocate. It is strict about what it
// reads (RFC 8259, and RFC 7493 for UTF-8). Nested objects that are short and flat are
// scanned, too. Others, and arrays, are left to package jsontext: their syntax is
// checked when they are scanned, everything else, such as duplicate names, when they
// are used.

// jsonValue is an encoded JSON value.
type jsonValue struct {
	raw     []byte
	kind    byte // '"', '0' for numbers, '{', '[', 't', 'f' or 'n'
	escaped bool // a string with escape sequences
	strict  bool // an object that is known to conform to RFC 7493
	at      int  // position of raw in the scanned text
}

// jsonObject walks over the members of a JSON object:
//
//	for o := openObject(text); o.next(); { use(o.key, o.value) }
//
// After the walk, bad is set if the text was not a valid object up to at.
type jsonObject struct {
	text  []byte
	at    int
	first bool
	// trusted is set when the text is part of a value that was already checked.
	trusted bool
	flat    bool // without nested values
	key     jsonValue
	value   jsonValue
	bad     bool
}

func openObject(text []byte) jsonObject {
	o := jsonObject{text: text, first: true}
	o.space()
	o.bad = !o.take('{')
	return o
}

// openTrusted opens an object that is valid JSON.
func openTrusted(text []byte) jsonObject {
	o := openObject(text)
	o.trusted = true
	return o
}

// openArray opens an array that is valid JSON, to walk over it with element.
func openArray(text []byte) jsonObject { return jsonObject{text: text, at: 1, trusted: true} }

// next moves to the next member and reports whether there is one.
func (o *jsonObject) next() bool {
	if o.bad {
		return false
	}
	o.space()
	if o.take('}') {
		return false
	}
	if !o.first {
		o.bad = !o.take(',')
		o.space()
	}
	o.first = false
	if o.bad || !o.scan(&o.key) || o.key.kind != '"' {
		o.bad = true
		return false
	}
	o.space()
	if !o.take(':') {
		o.bad = true
		return false
	}
	o.space()
	o.bad = !o.scan(&o.value)
	return !o.bad
}

// end reports whether only white space follows the object.
func (o *jsonObject) end() bool {
	o.space()
	return !o.bad && o.at == len(o.text)
}

// element moves to the next element of an array, which becomes o.value, and reports
// whether there is one.
func (o *jsonObject) element() bool {
	o.space()
	o.take(',')
	o.space()
	return o.at < len(o.text) && o.text[o.at] != ']' && o.scan(&o.value)
}

func (o *jsonObject) space() {
	for o.at < len(o.text) {
		switch o.text[o.at] {
		case ' ', '\t', '\r', '\n':
			o.at++
		default:
			return
		}
	}
}

func (o *jsonObject) take(c byte) bool {
	if o.at < len(o.text) && o.text[o.at] == c {
		o.at++
		return true
	}
	return false
}

// scan reads a value of any kind.
func (o *jsonObject) scan(v *jsonValue) bool {
	if o.at == len(o.text) {
		return false
	}
	start := o.at
	v.kind, v.escaped, v.strict = o.text[o.at], false, false
	ok := false
	switch v.kind {
	case '"':
		ok = o.scanString(v)
	case '{', '[':
		ok = !o.flat && o.scanNested(v)
	case 't':
		ok = o.scanLiteral("true")
	case 'f':
		ok = o.scanLiteral("false")
	case 'n':
		ok = o.scanLiteral("null")
	default:
		v.kind = '0'
		ok = o.scanNumber()
	}
	v.raw, v.at = o.text[start:o.at], start
	return ok
}

func (o *jsonObject) scanString(v *jsonValue) bool {
	text, start := o.text, o.at
	ascii := true
	for i := start + 1; i < len(text); i++ {
		i += plainLength(text[i:])
		if i == len(text) {
			return false
		}
		switch c := text[i]; {
		case c == '"':
			o.at = i + 1
			return ascii || utf8.Valid(text[start:o.at])
		case c == '\\':
			v.escaped = true
			i++
			if i == len(text) || !validEscape(text[i:]) {
				return false
			}
		case c >= utf8.RuneSelf:
			ascii = false
		default: // a control character
			return false
		}
	}
	return false
}

func validEscape(text []byte) bool {
	switch text[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if len(text) < 5 {
			return false
		}
		for _, c := range text[1:5] {
			if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func (o *jsonObject) scanLiteral(literal string) bool {
	if len(o.text)-o.at < len(literal) || string(o.text[o.at:o.at+len(literal)]) != literal {
		return false
	}
	o.at += len(literal)
	return true
}

func (o *jsonObject) scanNumber() bool {
	o.take('-')
	if !o.take('0') && !o.scanDigits() {
		return false
	}
	if o.take('.') && !o.scanDigits() {
		return false
	}
	if o.take('e') || o.take('E') {
		if !o.take('+') {
			o.take('-')
		}
		return o.scanDigits()
	}
	return true
}

func (o *jsonObject) scanDigits() bool {
	start := o.at
	for o.at < len(o.text) && isDigit(o.text[o.at]) {
		o.at++
	}
	return o.at > start
}

// maxFlatMembers bounds the comparisons of names in a flat object.
const maxFlatMembers = 16

// scanFlat scans an object with few members, with different names, and without nested
// values and escape sequences. It returns its length, or 0 for any other text.
func scanFlat(text []byte) int {
	var names [maxFlatMembers][]byte
	o := openObject(text)
	o.flat = true
	for count := 0; o.next(); count++ {
		if count == maxFlatMembers || o.key.escaped || o.value.escaped {
			return 0
		}
		for _, name := range names[:count] {
			if bytes.Equal(name, o.key.raw) {
				return 0
			}
		}
		names[count] = o.key.raw
	}
	if o.bad {
		return 0
	}
	return o.at
}

// scanNested finds the end of an object or array and checks its syntax.
func (o *jsonObject) scanNested(v *jsonValue) bool {
	if !o.trusted {
		if length := scanFlat(o.text[o.at:]); length > 0 {
			o.at += length
			v.strict = true
			return true
		}
	}
	start, depth := o.at, 0
	for o.at < len(o.text) {
		switch o.text[o.at] {
		case '"':
			var skipped jsonValue
			if !o.scanString(&skipped) {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		o.at++
		if depth == 0 {
			return o.trusted || jsontext.Value(o.text[start:o.at]).IsValid(syntaxOnly...)
		}
	}
	return false
}

// syntaxOnly is the check of values that may turn out to be skipped.
var syntaxOnly = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

func (v *jsonValue) isNested() bool { return v.kind == '{' || v.kind == '[' }

// isStrict reports whether an object or array with valid syntax also conforms to
// RFC 7493 (UTF-8, unique names).
func (v *jsonValue) isStrict() bool { return v.strict || jsontext.Value(v.raw).IsValid() }

// unquote returns the text of a string. Escape sequences are decoded into scratch.
// ok is false for other kinds of values and invalid strings.
func (v *jsonValue) unquote(scratch *[]byte) (text []byte, ok bool) {
	if v.kind != '"' {
		return nil, false
	}
	if !v.escaped {
		return v.raw[1 : len(v.raw)-1], true
	}
	start := len(*scratch)
	unquoted, err := jsontext.AppendUnquote(*scratch, v.raw)
	*scratch = unquoted
	return unquoted[start:], err == nil
}

// uint reads a non-negative integer: a number, or a string of decimal digits.
func (v *jsonValue) uint() (n uint64, ok bool) {
	digits := v.raw
	if v.kind == '"' {
		digits = digits[1 : len(digits)-1]
	}
	n, rest := leadingDigits(digits)
	return n, rest != nil && len(rest) == 0
}

// mostDigits is the number of digits of the largest int64. Every number of so many
// digits fits a uint64.
const mostDigits = len("9223372036854775807")

// leadingDigits returns the number that text starts with and the text after it. rest
// is nil if text starts with no decimal digit or with more than mostDigits.
func leadingDigits(text []byte) (n uint64, rest []byte) {
	length := 0
	for ; length < len(text); length++ {
		digit := uint64(text[length]) - '0'
		if digit > 9 {
			break
		}
		n = n*10 + digit
	}
	if length == 0 || length > mostDigits {
		return 0, nil
	}
	return n, text[length:]
}

func isDigit(c byte) bool { return c-'0' < 10 }

// plain marks the bytes that a JSON string may contain as they are.
var plain = func() (table [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// plainLength returns the number of plain bytes at the start of text.
func plainLength(text []byte) int {
	for i, c := range text {
		if !plain[c] {
			return i
		}
	}
	return len(text)
}
