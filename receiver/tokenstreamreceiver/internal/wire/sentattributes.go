// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// InList is the tag of each attribute in a KeyValueList.
const InList byte = keyValueListValues<<3 | bytesType

// SentAttributes walks over a KeyValueList that was not checked. It ends at any other field.
type SentAttributes struct {
	Key []byte
	// entry is the attribute with its tag and its length, of which content is the rest.
	entry, content []byte
	count          int
	usualFields
}

// WalkSent starts a walk over attributes.
func WalkSent(attributes []byte) SentAttributes {
	return SentAttributes{usualFields: usualFields{rest: attributes}}
}

// Next moves to the next attribute and reports whether there is one.
func (a *SentAttributes) Next() bool {
	if len(a.rest) == 0 {
		return false
	}
	from := a.rest
	tag := a.tag()
	if a.content = a.bytes(); tag != InList || a.failed {
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
func (a *SentAttributes) AppendTo(list []byte) []byte { return append(list, a.entry...) }
