// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestReadTraces_KeepsTypesAndTimes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "input.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
resourceSpans:
  - scopeSpans:
      - scope: {}
        spans:
          - traceId: "0102030405060708090a0b0c0d0e0f10"
            name: chat
            startTimeUnixNano: "1795233292000000001"
            attributes:
              - key: whole
                value:
                  intValue: "9007199254740993"
              - key: float
                value:
                  doubleValue: 2.0
              - key: digits
                value:
                  stringValue: "042"
              - key: flag
                value:
                  boolValue: true
`), 0o600))
	span := ReadTraces(t, file).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	require.Equal(t, "chat", span.Name())
	require.Equal(t, "0102030405060708090a0b0c0d0e0f10", span.TraceID().String())
	require.Equal(t, pcommon.Timestamp(1795233292000000001), span.StartTimestamp())
	require.Equal(t, map[string]any{"whole": int64(9007199254740993), "float": 2.0, "digits": "042", "flag": true}, span.Attributes().AsRaw())
}

func TestText_DiffersWithAnythingButTheOrderOfAttributes(t *testing.T) {
	with := func(change func(ptrace.Span)) string {
		traces := ptrace.NewTraces()
		span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		change(span)
		return text(t, traces)
	}
	plain := with(func(span ptrace.Span) {
		span.Attributes().PutInt("a", 1)
		span.Attributes().PutStr("b", "x")
	})
	require.Equal(t, plain, with(func(span ptrace.Span) {
		span.Attributes().PutStr("b", "x")
		span.Attributes().PutInt("a", 1)
	}))
	for name, change := range map[string]func(ptrace.Span){
		"type":      func(span ptrace.Span) { span.Attributes().PutDouble("a", 1) },
		"value":     func(span ptrace.Span) { span.Attributes().PutInt("a", 2) },
		"no value":  func(span ptrace.Span) { span.Attributes().PutEmpty("a") },
		"attribute": func(span ptrace.Span) { span.Attributes().PutInt("c", 1) },
		"event":     func(span ptrace.Span) { span.Events().AppendEmpty().SetName("stall") },
		"link":      func(span ptrace.Span) { span.Links().AppendEmpty() },
		"status":    func(span ptrace.Span) { span.Status().SetCode(ptrace.StatusCodeError) },
		"end":       func(span ptrace.Span) { span.SetEndTimestamp(1) },
		"parent":    func(span ptrace.Span) { span.SetParentSpanID(pcommon.SpanID{1}) },
	} {
		require.NotEqual(t, plain, with(func(span ptrace.Span) {
			span.Attributes().PutInt("a", 1)
			span.Attributes().PutStr("b", "x")
			change(span)
		}), name)
	}
}
