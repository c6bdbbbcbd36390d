package wire

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// This is a JSON reader for one purpose: short flat objects, millions of them,
// without an allocation. It is strict about what it reads, as RFC 8259 and RFC
// 7493 (no invalid UTF-8) are, and leaves objects and arrays inside the object
// to package jsontext: their syntax to begin with, and all else, such as names
// that are there twice, when they are used.

// value is a JSON value as it is written.
type value struct {
	raw     []byte
	kind    byte // '"', '0' for numbers, '{', '[', 't', 'f' or 'n'
	escaped bool // a string with escape sequences
}

// object walks over the members of a JSON object:
//
//	for o := open(text); o.next(); { use(o.key, o.value) }
//
// ends with o.bad if the object is not valid JSON up to where the walk came.
type object struct {
	text  []byte
	at    int
	first bool
	// trusted is set when the text is part of one that was found valid.
	trusted bool
	key     value
	value   value
	bad     bool
}

// open starts at the brace of an object.
func open(text []byte) object {
	o := object{text: text, first: true}
	o.space()
	o.bad = !o.take('{')
	return o
}

// openTrusted starts at the brace of an object that is valid JSON.
func openTrusted(text []byte) object {
	o := open(text)
	o.trusted = true
	return o
}

// next moves to the next member and reports whether there is one.
func (o *object) next() bool {
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

// end reports whether nothing but white space follows the object.
func (o *object) end() bool {
	o.space()
	return !o.bad && o.at == len(o.text)
}

// element moves to the next element of a valid array, which value becomes. It
// starts behind the bracket.
func (o *object) element() bool {
	o.space()
	o.take(',')
	o.space()
	return o.at < len(o.text) && o.text[o.at] != ']' && o.scan(&o.value)
}

func (o *object) space() {
	for o.at < len(o.text) {
		switch o.text[o.at] {
		case ' ', '\t', '\r', '\n':
			o.at++
		default:
			return
		}
	}
}

func (o *object) take(c byte) bool {
	if o.at < len(o.text) && o.text[o.at] == c {
		o.at++
		return true
	}
	return false
}

// scan reads any value.
func (o *object) scan(v *value) bool {
	if o.at == len(o.text) {
		return false
	}
	start := o.at
	v.kind, v.escaped = o.text[o.at], false
	ok := false
	switch v.kind {
	case '"':
		ok = o.scanString(v)
	case '{', '[':
		ok = o.scanNested()
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
	v.raw = o.text[start:o.at]
	return ok
}

func (o *object) scanString(v *value) bool {
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

func (o *object) scanLiteral(literal string) bool {
	if len(o.text)-o.at < len(literal) || string(o.text[o.at:o.at+len(literal)]) != literal {
		return false
	}
	o.at += len(literal)
	return true
}

func (o *object) scanNumber() bool {
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

func (o *object) scanDigits() bool {
	start := o.at
	for o.at < len(o.text) && isDigit(o.text[o.at]) {
		o.at++
	}
	return o.at > start
}

func isDigit(c byte) bool { return c-'0' < 10 }

// scanNested finds where an object or array ends, and has it checked.
func (o *object) scanNested() bool {
	start, depth := o.at, 0
	for o.at < len(o.text) {
		switch o.text[o.at] {
		case '"':
			var skipped value
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

// syntaxOnly is for what is skipped.
var syntaxOnly = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

func (v *value) isNested() bool { return v.kind == '{' || v.kind == '[' }

// isStrict reports whether an object or array that has no errors of syntax has no
// others.
func (v *value) isStrict() bool { return jsontext.Value(v.raw).IsValid() }

// unquote returns the text of a string, which is in scratch if it is not as
// written.
func (v *value) unquote(scratch *[]byte) ([]byte, bool) {
	if v.kind != '"' {
		return nil, false
	}
	if !v.escaped {
		return v.raw[1 : len(v.raw)-1], true
	}
	start := len(*scratch)
	text, err := jsontext.AppendUnquote(*scratch, v.raw)
	*scratch = text
	return text[start:], err == nil
}

// uint reads a non-negative integer, written as a number or as a string of
// decimal digits.
func (v *value) uint() (n uint64, ok bool) {
	digits := v.raw
	if v.kind == '"' {
		digits = digits[1 : len(digits)-1]
	}
	n, rest := leadingDigits(digits)
	return n, rest != nil && len(rest) == 0
}
