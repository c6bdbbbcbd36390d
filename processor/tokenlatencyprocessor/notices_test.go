// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// oneSpan returns a span of a service and a scope.
func oneSpan(t *testing.T, service, scope string, attributes map[string]any) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	resourceSpans := traces.ResourceSpans().AppendEmpty()
	resourceSpans.Resource().Attributes().PutStr("service.name", service)
	scopeSpans := resourceSpans.ScopeSpans().AppendEmpty()
	scopeSpans.Scope().SetName(scope)
	span := scopeSpans.Spans().AppendEmpty()
	span.SetStartTimestamp(epoch)
	span.SetEndTimestamp(epoch + 1_000_000_000)
	require.NoError(t, span.Attributes().FromRaw(attributes))
	return traces
}

func TestNotices_NameServiceScopeAndRemedyOncePerReasonAndSource(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	settings := processortest.NewNopSettings(typ)
	settings.Logger = zap.New(core)
	p, _ := newProcessor(t, settings, annotate.DefaultConfig())
	chat := func(more map[string]any) map[string]any {
		more["gen_ai.operation.name"] = "chat"
		return more
	}
	tapped := func(untimed string) map[string]any {
		return chat(map[string]any{
			"tokenpulse.source": "token_tap", "tokenpulse.tap.untimed": untimed, "gen_ai.request.stream": true,
			"tokenpulse.timeline": new(timeline.Timeline).AppendBinary(nil, epoch),
		})
	}
	for i := range 200 { // services and scopes of any number need no memory
		service, scope := fmt.Sprint("service-", i), fmt.Sprint("scope-", i)
		for _, attributes := range []map[string]any{
			chat(map[string]any{"gen_ai.request.stream": true}),
			chat(map[string]any{"gen_ai.request.stream": false}),
			{"openinference.span.kind": "LLM"},
			{"gen_ai.request.model": "gpt"},
			tapped("whole"),
			tapped("replayed"),
			tapped("unparsed"),
		} {
			require.NoError(t, p.ConsumeTraces(t.Context(), oneSpan(t, service, scope, attributes)))
		}
	}
	var found []string
	for _, entry := range logs.All() {
		_, anchor, _ := strings.Cut(entry.Message, "docs/sources.md#")
		found = append(found, entry.Level.String()+" "+anchor)
		require.Equal(t, map[string]any{"service": "service-0", "scope": "scope-0"}, entry.ContextMap())
		require.Contains(t, entry.Message, "remedy: ")
	}
	require.Equal(t, []string{"warn not_reported", "info not_streamed", "warn not_reported", "warn unclaimed", "warn not_streamed", "info not_streamed", "warn dropped_events"}, found)
	require.Contains(t, logs.All()[0].Message, "source semconv")
	require.Contains(t, logs.All()[2].Message, "source openinference")
	require.Contains(t, logs.All()[4].Message, "remedy: the requests ask for a stream: turn on streaming in what stopped it")
	require.Contains(t, logs.All()[5].Message, "remedy: none needed")
	require.Contains(t, logs.All()[6].Message, "remedy: raise max_event_bytes of token_tap")
}

func TestUnclaimed_CountsByScopeUpToTheLimit(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.WithoutCancel(t.Context()))) })
	settings := processortest.NewNopSettings(typ)
	settings.TelemetrySettings = tel.NewTelemetrySettings()
	p, _ := newProcessor(t, settings, annotate.DefaultConfig())
	consume := func(scope string, attributes map[string]any) {
		require.NoError(t, p.ConsumeTraces(t.Context(), oneSpan(t, "chat", scope, attributes)))
	}
	call := map[string]any{"llm.model": "gpt"}
	for i := range maxScopes + 20 {
		consume(fmt.Sprint("scope-", i), call)
	}
	consume("scope-0", call)
	consume("scope-0", map[string]any{"http.request.method": "GET"})
	consume("scope-0", map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"})
	consume("scope-0", map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt"})

	counted := map[string]int64{}
	metric, err := tel.GetMetric("otelcol_processor_token_latency_spans_unclaimed")
	require.NoError(t, err)
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		scope, _ := point.Attributes.Value("scope")
		counted[scope.AsString()] = point.Value
	}
	require.Len(t, counted, maxScopes+1)
	require.EqualValues(t, 2, counted["scope-0"])
	require.EqualValues(t, 1, counted[fmt.Sprint("scope-", maxScopes-1)])
	require.EqualValues(t, 20, counted["_overflow"])
}
