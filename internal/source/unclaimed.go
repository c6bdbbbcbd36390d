// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// kinds are attributes with which instrumentations that have a reader say what a span is. A span
// with one of them that no reader claims is not a model call.
var kinds = []string{names.OpenInferenceSpanKind, langSmithKind, langfuseType, mastraType, vercelOperation, "traceloop.span.kind"}

// ofModel reports whether an attribute is one that model calls have.
func ofModel(key string) bool {
	return strings.HasPrefix(key, "gen_ai.") || strings.HasPrefix(key, "llm.")
}

// resemblesModelCall reports whether a span with an attribute of models, which no reader claims, may
// be a model call: nothing on it says that it is an agent, a tool or another operation, and no
// token_latency processor annotated it. LiteLLM writes the provider's answer on a span below the call.
func (c candidate) resemblesModelCall() bool {
	return c.text(names.GenAIOperationName) == "" && !c.has(kinds...) && !wasDerived(c) &&
		!isLiteLLM(c) && c.span.Name() != "raw_gen_ai_request"
}
