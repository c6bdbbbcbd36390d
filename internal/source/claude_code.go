// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// claudeCode reads the model calls of Claude Code. Its time to first token is in ttft_ms, an alias.
var claudeCode = reader{
	name:    names.SourceClaudeCode,
	vantage: timeline.VantageClient,
	signs:   []*sign{{"span.type", oneOf("llm_request")}},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case "span.type":
			o.set(names.OperationName, Reported{Text: "chat", Rank: readerRank})
		case "model":
			o.setText(names.RequestModel, readerRank, v)
		case "input_tokens", "cache_read_tokens", "cache_creation_tokens": // which exclude each other
			o.addInput(v)
			if standard, ok := claudeCodeCache[key]; ok {
				o.setTokens(standard, readerRank, v)
			}
		case "output_tokens":
			o.setTokens(names.OutputTokens, readerRank, v)
		case "stop_reason":
			o.readFinishReasons(v)
		case "success":
			succeeded := boolean(v)
			o.Request.Failed = o.Request.Failed || succeeded.Known && !succeeded.Value
		}
	},
}

var claudeCodeCache = map[string]names.Standard{
	"cache_read_tokens": names.CacheReadInputTokens, "cache_creation_tokens": names.CacheWriteInputTokens,
}

// addInput adds a part of the input tokens, unless the span has their sum under a more trusted name.
func (o *Observation) addInput(v pcommon.Value) {
	sum := &o.Standard[names.InputTokens]
	if sum.Known && sum.Rank < readerRank {
		return
	}
	if n := integer(v, &o.Unusable); n.Known && 0 <= n.Value && n.Value < maxCount {
		*sum = Reported{Tokens: sum.Tokens + n.Value, Rank: readerRank, Known: true}
	}
}
