package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// openLLMetry reads the spans of OpenLLMetry. In Python it marks every frame of a
// stream with an event, those that tell the role, the finish and the usage too; in
// JavaScript it tells no times.
var openLLMetry = reader{
	name:    names.SourceOpenLLMetry,
	vantage: names.VantageClient,
	signs:   []*sign{modelCall, {"llm.request.type", oneOf("chat", "completion")}},
	claims: func(c candidate) bool {
		return !isLiteLLM(c) &&
			(c.has("gen_ai.is_streaming", "llm.is_streaming") || strings.HasPrefix(c.scope, "@traceloop/") || c.hasEvent(openLLMetryFrames))
	},
	firstChunkIsFrame: true,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if key == "llm.request.type" {
			operation := "chat"
			if v.Str() == "completion" {
				operation = "text_completion"
			}
			o.tell(names.OperationName, Told{Text: operation, Rank: readersRank})
		}
	},
}
