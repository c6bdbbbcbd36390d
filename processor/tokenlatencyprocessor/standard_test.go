// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// annotateModelCall returns the attributes of a model call of one second after processing.
func annotateModelCall(tb testing.TB, attributes map[string]any) map[string]any {
	tb.Helper()
	p, sink := newProcessor(tb, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	traces, spans := newSpans()
	span := spans.AppendEmpty()
	span.SetStartTimestamp(epoch)
	span.SetEndTimestamp(epoch + 1_000_000_000)
	require.NoError(tb, span.Attributes().FromRaw(attributes))
	require.NoError(tb, p.ConsumeTraces(tb.Context(), traces))
	return onlySpan(tb, sink.AllTraces()[0]).Attributes().AsRaw()
}

// filledAttributes are the attributes that are written if a span has them only under an alias.
var filledAttributes = []names.Standard{
	names.ProviderName, names.RequestModel, names.InputTokens, names.OutputTokens, names.ReasoningTokens,
	names.CacheReadInputTokens, names.CacheWriteInputTokens, names.TimeToFirstChunk,
}

func TestStandardAttributes_FilledFromAlias(t *testing.T) {
	tests := map[string]struct {
		standard string
		value    any
		expected any
	}{
		"gen_ai.system":                                          {"gen_ai.provider.name", "openai", "openai"},
		"llm.provider":                                           {"gen_ai.provider.name", "azure", "azure"},
		"llm.system":                                             {"gen_ai.provider.name", "openai", "openai"},
		"ai.model.provider":                                      {"gen_ai.provider.name", "openai.chat", "openai.chat"},
		"llm.model_name":                                         {"gen_ai.request.model", "gpt", "gpt"},
		"langfuse.observation.model.name":                        {"gen_ai.request.model", "gpt", "gpt"},
		"ai.model.id":                                            {"gen_ai.request.model", "gpt", "gpt"},
		"llm.request.model":                                      {"gen_ai.request.model", "gpt", "gpt"},
		"gen_ai.response.model":                                  {"gen_ai.request.model", "gpt", "gpt"},
		"gen_ai.usage.prompt_tokens":                             {"gen_ai.usage.input_tokens", 17, int64(17)},
		"llm.token_count.prompt":                                 {"gen_ai.usage.input_tokens", "17", int64(17)},
		"ai.usage.inputTokens":                                   {"gen_ai.usage.input_tokens", 17.0, int64(17)},
		"ai.usage.promptTokens":                                  {"gen_ai.usage.input_tokens", 0, int64(0)},
		"llm.usage.prompt_tokens":                                {"gen_ai.usage.input_tokens", 17, int64(17)},
		"gen_ai.usage.completion_tokens":                         {"gen_ai.usage.output_tokens", 12, int64(12)},
		"llm.token_count.completion":                             {"gen_ai.usage.output_tokens", "12", int64(12)},
		"ai.usage.outputTokens":                                  {"gen_ai.usage.output_tokens", 12, int64(12)},
		"ai.usage.completionTokens":                              {"gen_ai.usage.output_tokens", 12, int64(12)},
		"llm.usage.completion_tokens":                            {"gen_ai.usage.output_tokens", 12, int64(12)},
		"gen_ai.usage.reasoning_tokens":                          {"gen_ai.usage.reasoning.output_tokens", 4, int64(4)},
		"llm.token_count.completion_details.reasoning":           {"gen_ai.usage.reasoning.output_tokens", 4, int64(4)},
		"ai.usage.outputTokenDetails.reasoningTokens":            {"gen_ai.usage.reasoning.output_tokens", 4, int64(4)},
		"ai.usage.reasoningTokens":                               {"gen_ai.usage.reasoning.output_tokens", 4, int64(4)},
		"gen_ai.usage.details.reasoning_tokens":                  {"gen_ai.usage.reasoning.output_tokens", 4, int64(4)},
		"gen_ai.usage.output_token_details.reasoning_tokens":     {"gen_ai.usage.reasoning.output_tokens", 4, int64(4)},
		"gen_ai.usage.completion_token_details.reasoning_tokens": {"gen_ai.usage.reasoning.output_tokens", 4, int64(4)},
		"gen_ai.usage.cached_input_tokens":                       {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"gen_ai.usage.cached_tokens":                             {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"gen_ai.usage.input_token_details.cached_read_tokens":    {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"gen_ai.usage.prompt_token_details.cached_read_tokens":   {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"gen_ai.usage.cache_read_input_tokens":                   {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"llm.token_count.prompt_details.cache_read":              {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"ai.usage.inputTokenDetails.cacheReadTokens":             {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"ai.usage.cachedInputTokens":                             {"gen_ai.usage.cache_read.input_tokens", 8, int64(8)},
		"gen_ai.usage.cache_creation.input_tokens":               {"gen_ai.usage.cache_write.input_tokens", 5, int64(5)},
		"gen_ai.usage.cache_creation_input_tokens":               {"gen_ai.usage.cache_write.input_tokens", 5, int64(5)},
		"llm.token_count.prompt_details.cache_write":             {"gen_ai.usage.cache_write.input_tokens", "5", int64(5)},
		"ai.usage.inputTokenDetails.cacheWriteTokens":            {"gen_ai.usage.cache_write.input_tokens", 5, int64(5)},
		"gen_ai.client.operation.time_to_first_chunk":            {"gen_ai.response.time_to_first_chunk", 0.25, 0.25},
		"gen_ai.client.inference.time_to_first_chunk":            {"gen_ai.response.time_to_first_chunk", "0.25", 0.25},
		"gen_ai.response.time_to_first_token":                    {"gen_ai.response.time_to_first_chunk", 0.25, 0.25},
		"ai.response.msToFirstChunk":                             {"gen_ai.response.time_to_first_chunk", 250.0, 0.25},
		"ai.stream.msToFirstChunk":                               {"gen_ai.response.time_to_first_chunk", 250.0, 0.25},
		"ttft_ms":                                                {"gen_ai.response.time_to_first_chunk", "250", 0.25},
	}
	for alias, test := range tests {
		t.Run(alias, func(t *testing.T) {
			out := annotateModelCall(t, map[string]any{names.GenAIOperationName: "chat", alias: test.value})
			require.Equal(t, test.expected, out[test.standard])
			require.EqualValues(t, test.value, out[alias], "the alias is kept")
		})
		t.Run(alias+" beside the standard name", func(t *testing.T) {
			for _, existing := range []any{"text", int64(99), 0.5, true, "", []any{"a", "list"}} {
				out := annotateModelCall(t, map[string]any{names.GenAIOperationName: "chat", alias: test.value, test.standard: existing})
				require.Equal(t, existing, out[test.standard], "an existing attribute is never overwritten")
			}
		})
	}
	for _, standard := range filledAttributes { // the table holds every alias of the filled attributes
		for _, alias := range names.Aliases[standard][1:] {
			require.Contains(t, tests, alias)
			require.Equal(t, names.Aliases[standard][0], tests[alias].standard)
		}
	}
}

func TestStandardAttributes_MostTrustedAliasWins(t *testing.T) {
	for _, order := range [][]string{
		{"gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"}, {"llm.usage.completion_tokens", "gen_ai.usage.completion_tokens"},
	} {
		tokens := map[string]int64{"gen_ai.usage.completion_tokens": 12, "llm.usage.completion_tokens": 999}
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
		traces, spans := newSpans()
		attributes := spans.AppendEmpty().Attributes()
		attributes.PutStr(names.GenAIOperationName, "chat")
		for _, key := range order {
			attributes.PutInt(key, tokens[key])
		}
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		v, ok := onlySpan(t, sink.AllTraces()[0]).Attributes().Get(names.GenAIOutputTokens)
		require.True(t, ok)
		require.EqualValues(t, 12, v.Int())
	}
}

func TestStandardAttributes_NotFilledFromUnusableValue(t *testing.T) {
	for name, attributes := range map[string]map[string]any{
		"no alias":      {},
		"empty":         {"gen_ai.system": "", "llm.model_name": ""},
		"another type":  {"gen_ai.system": 7, "llm.model_name": true, "llm.token_count.prompt": []any{1}},
		"text":          {"llm.token_count.completion": "many", "ttft_ms": "soon"},
		"negative":      {"llm.token_count.completion": -1, "ttft_ms": -1},
		"half a token":  {"llm.token_count.completion": 0.5},
		"after the end": {"ttft_ms": 1001},
		"not streamed":  {"ttft_ms": 500, "gen_ai.request.is_stream": false},
	} {
		t.Run(name, func(t *testing.T) {
			attributes[names.GenAIOperationName] = "chat"
			out := annotateModelCall(t, attributes)
			for _, standard := range filledAttributes {
				require.NotContains(t, out, names.Aliases[standard][0])
			}
		})
	}
	t.Run("a frontend's model of another type", func(t *testing.T) {
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
		traces, spans := newSpans()
		span := spans.AppendEmpty()
		span.SetName("http-request")
		span.Attributes().PutStr("output_tokens", "12")
		span.Attributes().PutInt("model", 7)
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		out := onlySpan(t, sink.AllTraces()[0]).Attributes().AsRaw()
		require.NotContains(t, out, names.GenAIRequestModel)
		require.Equal(t, int64(12), out[names.GenAIOutputTokens])
	})
}
