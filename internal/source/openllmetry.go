package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

const (
	openLLMetryStream = "gen_ai.is_streaming"
	// requestType was there before the conventions named the operation. LiteLLM
	// writes it, too, with other values.
	requestType = "llm.request.type"
)

// openLLMetry reads the spans of OpenLLMetry. In Python it marks every frame of a
// stream with an event, those that tell the role, the finish and the usage too; in
// JavaScript it tells no times.
var openLLMetry = reader{
	name:    names.SourceOpenLLMetry,
	vantage: names.VantageClient,
	signs:   []*sign{modelCall, {requestType, oneOf("chat", "completion")}, {key: openLLMetryStream}},
	claims: func(c candidate) bool {
		return !isLiteLLM(c) && saysOpenLLMetry(c) && isOpenLLMetryCall(c)
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == requestType {
			operation := "chat"
			if v.Str() == "completion" {
				operation = "text_completion"
			}
			o.tell(names.OperationName, Told{Text: operation, Rank: readersRank})
		}
	},
}

// isOpenLLMetryCall tells a model call also by what older versions wrote before
// there was a name for the operation.
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

// saysOpenLLMetry knows its spans also by their names, such as openai.chat.
func saysOpenLLMetry(c candidate) bool {
	for _, call := range [...]string{".chat", ".completion", ".response"} {
		if strings.HasSuffix(c.span.Name(), call) {
			return true
		}
	}
	return c.has(openLLMetryStream) || strings.HasPrefix(c.scope, "@traceloop/") || c.hasEvent(openLLMetryFrames)
}
