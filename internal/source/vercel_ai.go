// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	vercelOperation = "ai.operationId"
	vercelStream    = ".doStream"
	vercelGenerate  = ".doGenerate"
)

// vercelAI reads the spans of the Vercel AI SDK: those of version 6 and of version 7's legacy
// telemetry by their attributes, those of version 7 by their scope. The first chunk holds content,
// except on OpenAI's Responses API.
var vercelAI = reader{
	name:    names.SourceVercelAI,
	vantage: timeline.VantageClient,
	signs:   []*sign{{vercelOperation, isVercelCall}, modelCall},
	claims:  func(c candidate) bool { return c.scope == "gen_ai" || c.has(vercelOperation) },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case vercelOperation:
			o.set(names.OperationName, Reported{Text: "chat", Rank: readerRank})
			if strings.HasSuffix(v.Str(), vercelGenerate) {
				o.streaming = optional.Of(false)
			}
		case "ai.model.provider":
			// The Responses API reports in its first chunk that the response was created.
			o.firstChunkIsFrame = strings.HasSuffix(v.Str(), ".responses")
		default:
			readConventions(o, key, v)
		}
	},
	event: func(o *Observation, _ ptrace.Span, event ptrace.SpanEvent) {
		// Some versions stamp the event at the span's end, so its time is ignored and its attributes
		// are read. Calls that were aborted report the first chunk only here.
		if event.Name() != "ai.stream.firstChunk" {
			return
		}
		for key, v := range event.Attributes().All() {
			if a := aliases.Get(key); a != nil && a.standard == names.TimeToFirstChunk {
				o.readStandard(a, v)
			}
		}
	},
}

// isVercelCall reports whether the operation is a model call, and not the function that makes calls
// and whose span repeats their usage.
func isVercelCall(v pcommon.Value) bool {
	return strings.HasSuffix(v.Str(), vercelStream) || strings.HasSuffix(v.Str(), vercelGenerate)
}
