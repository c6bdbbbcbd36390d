// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// maxEstimated limits the names of estimated numbers. There are fewer numbers.
const maxEstimated = 32

// factsOf returns what the page shows of a request besides its numbers.
func factsOf(vantage string, span ptrace.Span, resource pcommon.Map) slowest.Facts {
	text := func(name string) string { return attributes.Label(name, span.Attributes(), resource) }
	f := slowest.Facts{
		ErrorType: names.Category(text(names.ErrorType)), Status: text(names.HTTPResponseStatusCode), Source: text(names.Source),
		Replica: attributes.Replica(vantage, text),
	}
	for i, name := range list(span, names.Estimated).All() {
		if i == maxEstimated {
			break
		}
		f.Estimated = append(f.Estimated, names.CleanLabel(name.Str()))
	}
	return f
}
