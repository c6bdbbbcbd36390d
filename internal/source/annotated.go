// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// IsAnnotated reports whether a token_latency processor, this one or another, annotated the span as
// a model call.
func IsAnnotated(span ptrace.Span) bool {
	source, annotated := span.Attributes().Get(names.Source)
	if annotated && source.Str() == names.SourceTokenTap { // written by token_tap, too
		_, measured := span.Attributes().Get(numbers.RequestDuration.Attribute())
		_, unmeasured := span.Attributes().Get(names.Unmeasured)
		return measured || unmeasured
	}
	return annotated
}

// IsRepeated reports whether a token_latency processor found that another span is of the same request, and counts.
func IsRepeated(span ptrace.Span) bool {
	_, repeated := span.Attributes().Get(names.Repeated)
	return repeated
}

// IsAgent reports whether a span that is not a model call is an agent, a tool or another operation of the conventions.
func IsAgent(attributes pcommon.Map) bool {
	switch Text(attributes, names.OpenInferenceSpanKind) {
	case "AGENT", "TOOL":
		return true
	}
	return Text(attributes, names.GenAIOperationName) != ""
}

// IsRolledUp reports whether a token_latency processor, this one or another, summed up a trace on
// the span.
func IsRolledUp(span ptrace.Span) bool {
	_, rolledUp := span.Attributes().Get(names.TraceCalls)
	return rolledUp
}

// Text returns a text attribute, or "".
func Text(attributes pcommon.Map, name string) string {
	if v, ok := attributes.Get(name); ok {
		return v.Str()
	}
	return ""
}

// MaxNumber is larger than any real duration in seconds and any real number of tokens, and small
// enough that sums stay finite.
const MaxNumber = 1 << 53

// Measured returns a number that a token_latency processor wrote. It is unknown unless it is between
// 0 and MaxNumber.
func Measured(attributes pcommon.Map, name string) latency.Measure {
	v, ok := attributes.Get(name)
	if !ok {
		return latency.Measure{}
	}
	n, ok := Number(v)
	if !ok || !(n >= 0 && n <= MaxNumber) {
		return latency.Measure{}
	}
	return latency.Measure{Value: n, Known: true, Estimated: isEstimated(attributes, name)}
}

// PutMeasure writes a number, and adds it to the list of estimates or removes it.
func PutMeasure(attributes pcommon.Map, name string, m latency.Measure) {
	attributes.PutDouble(name, m.Value)
	if m.Estimated == isEstimated(attributes, name) {
		return
	}
	short, estimates := strings.TrimPrefix(name, names.Prefix), List(attributes, names.Estimated)
	if m.Estimated {
		estimates.AppendEmpty().SetStr(short)
		return
	}
	estimates.RemoveIf(func(v pcommon.Value) bool { return v.Str() == short })
	RemoveEmpty(attributes, names.Estimated)
}

func isEstimated(attributes pcommon.Map, name string) bool {
	estimates, ok := Listed(attributes, names.Estimated)
	if !ok {
		return false
	}
	short := strings.TrimPrefix(name, names.Prefix)
	for _, v := range estimates.All() {
		if v.Str() == short {
			return true
		}
	}
	return false
}

// List returns an attribute as a list. It creates a missing one, and replaces one of another type.
func List(attributes pcommon.Map, name string) pcommon.Slice {
	if existing, ok := Listed(attributes, name); ok {
		return existing
	}
	return attributes.PutEmptySlice(name)
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
