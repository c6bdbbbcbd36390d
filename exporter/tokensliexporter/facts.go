// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/page"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// maxEstimated limits the names of estimated numbers. There are fewer numbers.
const maxEstimated = 32

// factsOf returns what the page shows of a request besides its numbers.
func factsOf(span ptrace.Span, resource pcommon.Map) slowest.Facts {
	text := func(name string) string { return valueOf(name, span, resource) }
	f := slowest.Facts{ErrorType: names.Category(text(names.ErrorType)), Status: text(names.HTTPResponseStatusCode), Source: text(names.Source), Replica: page.ReplicaOf(text)}
	for i, name := range list(span, names.Estimated).All() {
		if i == maxEstimated {
			break
		}
		f.Estimated = append(f.Estimated, names.CleanLabel(name.Str()))
	}
	return f
}

// valueOf returns an attribute of a span or of its resource, as labels have it, or "".
func valueOf(name string, span ptrace.Span, resource pcommon.Map) string {
	v, ok := attributes.LookUp(name, span.Attributes(), resource)
	if !ok {
		return ""
	}
	return names.CleanLabel(v.AsString())
}
