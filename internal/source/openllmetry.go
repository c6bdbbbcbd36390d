// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	openLLMetryStream = "gen_ai.is_streaming"
	// requestType is older than the conventions' name of the operation. LiteLLM writes it too, with
	// other values.
	requestType = "llm.request.type"
)

// openLLMetry reads the spans of OpenLLMetry. In Python it marks every frame of a stream with an
// event, including those with the role, the finish reason and the usage; in JavaScript it reports no
// times.
var openLLMetry = reader{
	name:    names.SourceOpenLLMetry,
	vantage: timeline.VantageClient,
	signs:   []*sign{modelCall, {requestType, oneOf("chat", "completion")}, {key: openLLMetryStream}},
	claims: func(c candidate) bool {
		return !isLiteLLM(c) && isOpenLLMetry(c) && isOpenLLMetryCall(c)
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == requestType {
			operation := "chat"
			if v.Str() == "completion" {
				operation = "text_completion"
			}
			o.set(names.OperationName, Reported{Text: operation, Rank: readerRank})
		}
	},
}

// isOpenLLMetryCall reports whether the span is a model call by its operation, or by its request
// type in versions that do not write the operation.
func isOpenLLMetryCall(c candidate) bool {
	if c.has(names.GenAIOperationName) {
		return c.isModelCall()
	}
	switch c.text(requestType) {
	case "", "chat", "completion":
		return true
	}
	return false
}

// isOpenLLMetry recognises the spans by their names, such as openai.chat, or by what they carry.
func isOpenLLMetry(c candidate) bool {
	for _, call := range [...]string{".chat", ".completion", ".response"} {
		if strings.HasSuffix(c.span.Name(), call) {
			return true
		}
	}
	return c.has(openLLMetryStream) || strings.HasPrefix(c.scope, "@traceloop/") || c.hasEvent(openLLMetryFrames)
}
