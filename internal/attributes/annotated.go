// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

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
