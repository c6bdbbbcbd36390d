// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// kinds are attributes with which instrumentations that have a reader say what a span is. A span
// with one of them that no reader claims is not a model call.
var kinds = []string{names.OpenInferenceSpanKind, langSmithKind, langfuseType, mastraType, vercelOperation, "traceloop.span.kind"}

// hasModelAttribute reports whether the span has an attribute that model calls have. The initials
// rule out most other spans without a search.
func (c candidate) hasModelAttribute() bool {
	if !c.mayHave("gen_ai.") && !c.mayHave("llm.") {
		return false
	}
	for key := range c.span.Attributes().All() {
		if strings.HasPrefix(key, "gen_ai.") || strings.HasPrefix(key, "llm.") {
			return true
		}
	}
	return false
}

// resemblesModelCall reports whether a span that no reader claims may be a model call: it has an
// attribute of one, and nothing on it says that it is an agent, a tool or another operation, and no
// token_latency processor annotated it. LiteLLM writes the provider's answer on a span below the call.
func (c candidate) resemblesModelCall() bool {
	return c.hasModelAttribute() && c.operationMayGenerate() && !c.has(kinds...) && !wasDerived(c) &&
		!isLiteLLM(c) && c.span.Name() != "raw_gen_ai_request" && c.text(logfireType) == ""
}

// otherOperations are operations that are no model calls, though spans of some have a model and the tokens of calls below.
var otherOperations = []string{
	"invoke_agent", "create_agent", "agent", "agent_step", "invoke_workflow", "workflow", "execute_tool", "tool", "step", "plan", "chain", "task",
	"embeddings", "embedding", "retrieval", "rerank", "search_memory", "update_memory", "guardrail", "evaluate",
}

// operationMayGenerate reports whether a span without an operation, or with one that is not known, may be a model call.
func (c candidate) operationMayGenerate() bool {
	operation := c.text(names.GenAIOperationName)
	return operation == "" || !slices.Contains(otherOperations, operation) && !slices.Contains(modelOperations, operation) &&
		c.has(names.Aliases[names.RequestModel]...) && c.has(names.Aliases[names.OutputTokens]...)
}
