// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	langfuseType       = "langfuse.observation.type"
	langfuseFirstChunk = "langfuse.observation.completion_start_time"
)

// langfuse reads the spans of Langfuse. Its values are JSON texts.
var langfuse = reader{
	name:    names.SourceLangfuse,
	vantage: timeline.VantageClient,
	signs:   []*sign{{langfuseType, oneOf("generation")}, {key: langfuseFirstChunk}},
	claims: func(c candidate) bool {
		return !isLiteLLM(c) && !c.has(pipecatFirstByte) && (c.text(langfuseType) == "generation" || !c.has(langfuseType) && c.isModelCall())
	},
	firstChunkIsFrame: true,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case langfuseFirstChunk:
			o.setFirstChunkAt(timeText(v, &o.Unusable), true)
		case "langfuse.observation.usage_details":
			o.readLangfuseUsage(v)
		case "langfuse.observation.level":
			o.Request.Failed = o.Request.Failed || v.Str() == "ERROR"
		}
	},
}

// langfuseUsage lists the keys of usage_details, and of the objects in it. Langfuse passes usage on
// in the form of the API that was called.
var langfuseUsage = map[names.Standard][]string{
	names.InputTokens:  {"input", "prompt_tokens", "input_tokens"},
	names.OutputTokens: {"output", "completion_tokens", "output_tokens"},
	names.ReasoningTokens: {
		"output_reasoning_tokens", "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
	},
	names.CacheReadInputTokens: {
		"input_cached_tokens", "input_cache_read", "cache_read_input_tokens",
		"prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
	},
	names.CacheWriteInputTokens: {"input_cache_creation", "cache_creation_input_tokens", "prompt_tokens_details.cache_write_tokens"},
}

func (o *Observation) readLangfuseUsage(v pcommon.Value) {
	var usage map[string]any
	if json.Unmarshal([]byte(v.Str()), &usage) != nil {
		o.Unusable++
		return
	}
	for standard, keys := range langfuseUsage {
		for _, key := range keys {
			object := usage
			if outer, inner, nested := strings.Cut(key, "."); nested {
				object, _ = usage[outer].(map[string]any)
				key = inner
			}
			raw := object[key]
			if raw == nil {
				continue
			}
			n := pcommon.NewValueEmpty()
			if n.FromRaw(raw) == nil {
				o.setTokens(standard, readerRank, n)
			}
			break
		}
	}
}
