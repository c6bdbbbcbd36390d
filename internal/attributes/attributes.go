// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package attributes reads and writes attributes of spans and resources: texts, lists and numbers in every type that
// senders use, and what a token_latency processor wrote.
package attributes

import "go.opentelemetry.io/collector/pdata/pcommon"

// Text returns a text attribute, or "".
func Text(attributes pcommon.Map, name string) string {
	if v, ok := attributes.Get(name); ok {
		return v.Str()
	}
	return ""
}

// List returns an attribute as a list. It creates a missing one, and replaces one of another type.
func List(attributes pcommon.Map, name string) pcommon.Slice {
	v, _ := attributes.GetOrPutEmpty(name)
	if v.Type() != pcommon.ValueTypeSlice {
		return v.SetEmptySlice()
	}
	return v.Slice()
}

// Listed returns an attribute that is a list, and false if it is missing or of another type.
func Listed(attributes pcommon.Map, name string) (pcommon.Slice, bool) {
	if v, ok := attributes.Get(name); ok && v.Type() == pcommon.ValueTypeSlice {
		return v.Slice(), true
	}
	return pcommon.Slice{}, false
}

// RemoveEmpty removes an attribute that is an empty list or of another type.
func RemoveEmpty(attributes pcommon.Map, name string) {
	if all, ok := Listed(attributes, name); !ok || all.Len() == 0 {
		attributes.Remove(name)
	}
}

// LookUp returns an attribute of the span, or else of its resource.
func LookUp(name string, attributes, resource pcommon.Map) (pcommon.Value, bool) {
	if v, ok := attributes.Get(name); ok {
		return v, true
	}
	return resource.Get(name)
}
