// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// maxEstimated limits the names of estimated numbers. There are fewer numbers.
const maxEstimated = 32

// Facts returns what the span of a request says besides its numbers. vantage is that of the request.
func Facts(vantage string, span ptrace.Span, resource pcommon.Map) slowest.Facts {
	text := func(name string) string { return attributes.Label(name, span.Attributes(), resource) }
	f := slowest.Facts{
		ErrorType: names.Category(text(names.ErrorType)), Status: text(names.HTTPResponseStatusCode), Source: text(names.Source),
		Replica: attributes.Replica(vantage, text),
	}
	estimated, ok := attributes.Listed(span.Attributes(), names.Estimated)
	if !ok {
		return f
	}
	for i, name := range estimated.All() {
		if i == maxEstimated {
			break
		}
		f.Estimated = append(f.Estimated, names.CleanLabel(name.Str()))
	}
	return f
}

// Timeline returns the encoded arrivals of the chunks of a span, or nil if it has none.
func Timeline(span ptrace.Span) []byte {
	if v, ok := span.Attributes().Get(names.Timeline); ok && v.Type() == pcommon.ValueTypeBytes {
		return v.Bytes().AsRaw()
	}
	return attributes.PackedOffsets(span.Attributes())
}
