// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// candidate is a span with a sign of at least one reader.
type candidate struct {
	scope string
	span  ptrace.Span
	// lengths has a bit for the length, modulo 64, of each attribute key of the span.
	lengths uint64
	// initials has a bit for the first byte, modulo 64, of each attribute key.
	initials uint64
}

// mayHave reports false only if no attribute key of the span begins like this one.
func (c candidate) mayHave(prefix string) bool { return c.initials>>(prefix[0]%64)&1 != 0 }

// get returns an attribute of the span. Lengths and initials rule out most missing ones without a search: without them,
// BenchmarkModelCall takes 3% more CPU time for spans of vLLM, and 7% more for those of the conventions.
func (c candidate) get(key string) (pcommon.Value, bool) {
	if c.lengths>>(len(key)%64)&1 == 0 || !c.mayHave(key) {
		return pcommon.Value{}, false
	}
	return c.span.Attributes().Get(key)
}

// has reports whether the span has any of the attributes.
func (c candidate) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok := c.get(key); ok {
			return true
		}
	}
	return false
}

// failed reports whether the status of the span is an error.
func (c candidate) failed() bool { return c.span.Status().Code() == ptrace.StatusCodeError }

// text returns a text attribute of the span, or "".
func (c candidate) text(key string) string {
	if v, ok := c.get(key); ok {
		return v.Str()
	}
	return ""
}

// hasEvent reports whether the span has an event of one of the names.
func (c candidate) hasEvent(events []string) bool {
	for _, event := range c.span.Events().All() {
		if slices.Contains(events, event.Name()) {
			return true
		}
	}
	return false
}

// isModelCall reports whether the span is a model call by the OpenTelemetry conventions.
func (c candidate) isModelCall() bool {
	v, ok := c.get(names.GenAIOperationName)
	return ok && modelCall.matches(v)
}

// sign is an attribute that hints at an instrumentation.
type sign struct {
	key string
	// matches reports whether a value counts. If nil, every value does.
	matches func(v pcommon.Value) bool
}

// modelOperations are the operations of model calls: those of the conventions, and others that senders write.
var modelOperations = []string{"chat", "text_completion", "generate_content", "chat_streaming", "responses", "text_completions"}

// modelCall is the sign of a model call by the OpenTelemetry conventions. Agents, tools and
// embeddings have other operations.
var modelCall = &sign{names.GenAIOperationName, oneOf(modelOperations...)}

// oneOf returns a function that reports whether a value is one of the texts.
func oneOf(texts ...string) func(pcommon.Value) bool {
	return func(v pcommon.Value) bool { return slices.Contains(texts, v.Str()) }
}
