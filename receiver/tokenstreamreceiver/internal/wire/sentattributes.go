// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Form is how attributes are encoded: the tag of each.
type Form byte

const (
	// InList is the form of the attributes in a KeyValueList.
	InList Form = keyValueListValues<<3 | bytesType
	// InEvent is the form of the attributes in the start and the end of a token_stream.
	InEvent Form = startAttributes<<3 | bytesType // endAttribute has the same number
)

// SentAttributes walks over encoded attributes that were not checked, like Attributes over a
// KeyValueList. It ends at any other field.
type SentAttributes struct {
	Key []byte
	// entry is the attribute with its tag and its length, of which content is the rest.
	entry, content []byte
	form           Form
	count          int
	usualFields
}

// WalkSent starts a walk over attributes.
func WalkSent(form Form, attributes []byte) SentAttributes {
	return SentAttributes{form: form, usualFields: usualFields{rest: attributes}}
}

// Next moves to the next attribute and reports whether there is one.
func (a *SentAttributes) Next() bool {
	if len(a.rest) == 0 {
		return false
	}
	from := a.rest
	tag := a.tag()
	if a.content = a.bytes(); Form(tag) != a.form || a.failed {
		a.fail()
		return false
	}
	a.entry = from[:len(from)-len(a.rest)]
	a.count++
	a.Key, _ = readKeyValue(a.content)
	return true
}

// Valid reports whether the attribute is valid.
func (a *SentAttributes) Valid() bool { return checkKeyValue(a.content, 0) == nil }

// Complete reports whether the walk ended after the last attribute, and there are not too many.
func (a *SentAttributes) Complete() bool { return a.complete() && checkNumber(a.count) == nil }

// AppendTo appends the attribute to a KeyValueList.
func (a *SentAttributes) AppendTo(list []byte) []byte {
	at := len(list)
	list = append(list, a.entry...)
	list[at] = byte(InList)
	return list
}
