// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// foreignSpans returns spans that are not model calls, though some resemble one.
func foreignSpans(tb testing.TB) map[string]ptrace.Span {
	tb.Helper()
	spans := map[string]map[string]any{
		"HTTP": {
			"http.request.method": "POST", "http.response.status_code": 200, "http.route": "/v1/chat/completions",
			"url.scheme": "https", "url.path": "/v1/chat/completions", "url.full": "https://localhost/v1/chat/completions",
			"server.address": "localhost", "server.port": 443, "client.address": "10.0.0.1", "client.port": 51234,
			"network.protocol.name": "http", "network.protocol.version": "1.1", "network.peer.address": "10.0.0.2",
			"user_agent.original": "curl", "thread.id": 7, "thread.name": "main", "user.id": "u", "session.id": "s",
			"deployment.environment.name": "production", "http.request.body.size": 1234,
		},
		"database": {
			"db.system.name": "postgresql", "db.namespace": "app", "db.operation.name": "SELECT", "db.collection.name": "users",
			"db.query.summary": "SELECT users", "server.address": "localhost", "server.port": 5432, "network.peer.address": "10.0.0.3",
		},
		"agent that repeats the usage of its calls": {
			names.GenAIOperationName: "invoke_agent", names.GenAIProviderName: "openai", names.GenAIRequestModel: "gpt",
			"gen_ai.agent.name": "travel", "gen_ai.agent.id": "a1", "gen_ai.conversation.id": "c1",
			names.GenAIInputTokens: 100, names.GenAIOutputTokens: 50, "gen_ai.response.model": "gpt",
			names.GenAIFinishReasons: []any{"stop"}, "gen_ai.request.temperature": 0.2, "gen_ai.request.max_tokens": 100,
			"gen_ai.usage.cost": 0.1, "gen_ai.output.type": "text", "server.address": "localhost", "server.port": 443,
		},
		"tool":                       {names.GenAIOperationName: "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "t1"},
		"embeddings":                 {names.GenAIOperationName: "embeddings", names.GenAIRequestModel: "e", names.GenAIInputTokens: 100},
		"operation of another type":  {names.GenAIOperationName: 7},
		"usage without an operation": {names.GenAIOutputTokens: 12, names.GenAIRequestModel: "gpt"},
		"function of the Vercel AI SDK around its calls": {
			"ai.operationId": "ai.streamText", "ai.usage.outputTokens": 12, "ai.response.finishReason": "stop",
		},
		"step of Mastra": {"mastra.span.type": "model_step", names.GenAIOperationName: "agent_step"},
		"generation of Mastra around its inference": {"mastra.span.type": "model_generation", names.GenAIOperationName: "model_generation"},
		"chain of OpenInference":                    {"openinference.span.kind": "CHAIN", "llm.token_count.total": 12},
		"span of Langfuse":                          {"langfuse.observation.type": "span"},
		"workflow of OpenLLMetry":                   {"traceloop.span.kind": "workflow", "gen_ai.agent.name": "travel"},
		"provider's answer to LiteLLM":              {"llm.openai.model": "gpt"},
		"model attribute with a long name":          {"gen_ai." + strings.Repeat("x", 63): 1},
		"prompt of LangSmith":                       {"langsmith.span.kind": "prompt", names.GenAIOperationName: "chat"},
		"generate, but not TGI's":                   {"name": "thumbnail", "width": 100},
		"only the name of Dynamo's":                 {"uri": "/health", "method": "GET"},
		"total time, but not TGI's":                 {"total_time": "12ms"},
		"cancelled, but not Dynamo's":               {"cancelled": true, "output_tokens": 12},
		"nothing":                                   {},
		"empty attribute name":                      {"": "x"},
	}
	made := map[string]ptrace.Span{}
	for name, attributes := range spans {
		span := ptrace.NewSpan()
		require.NoError(tb, span.Attributes().FromRaw(attributes))
		span.SetEndTimestamp(1_000_000_000)
		made[name] = span
	}
	made["generate, but not TGI's"].SetName("generate")
	made["provider's answer to LiteLLM"].SetName("raw_gen_ai_request")
	made["only the name of Dynamo's"].SetName("http-request")
	return made
}

func TestForeignSpan_IsNotClaimed(t *testing.T) {
	for name, span := range foreignSpans(t) {
		t.Run(name, func(t *testing.T) {
			o, err := new(Observer).Observe("", span)
			require.NoError(t, err)
			require.Nil(t, o)
		})
	}
}

func TestForeignSpan_DoesNotAllocate(t *testing.T) {
	var observer Observer
	for name, span := range foreignSpans(t) {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if o, _ := observer.Observe("", span); o != nil {
				t.Error("claimed")
			}
		}), name)
	}
}

func BenchmarkForeignSpan(b *testing.B) {
	spans := foreignSpans(b)
	for _, name := range []string{"HTTP", "database", "agent that repeats the usage of its calls"} {
		b.Run(name, func(b *testing.B) {
			var observer Observer
			b.ReportAllocs()
			for b.Loop() {
				if o, _ := observer.Observe("some.scope", spans[name]); o != nil {
					b.Fatal("claimed")
				}
			}
		})
	}
}
