// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// spanEvents encodes the streams as spans with one event per chunk, under the event name
// of OpenLLMetry. A span cannot be sent in parts.
func spanEvents(streams []stream, _, _ int) []byte {
	traces, spans := newSpans()
	for i, s := range streams {
		span := spans.AppendEmpty()
		identify(span, i)
		span.SetName("chat " + s.model)
		span.SetStartTimestamp(pcommon.Timestamp(s.start))
		span.SetEndTimestamp(pcommon.Timestamp(s.end()))
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.Attributes().PutStr("gen_ai.provider.name", "vllm")
		span.Attributes().PutStr("gen_ai.request.model", s.model)
		span.Attributes().PutInt("gen_ai.usage.input_tokens", 550)
		span.Attributes().PutInt("gen_ai.usage.output_tokens", int64(len(s.chunks)))
		if s.unique != "" {
			span.Attributes().PutStr("gen_ai.response.id", s.unique)
		}
		for _, at := range s.chunks {
			event := span.Events().AppendEmpty()
			event.SetName("gen_ai.content.completion.chunk")
			event.SetTimestamp(pcommon.Timestamp(at))
		}
	}
	return must(ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto())
}

func newSpans() (ptrace.Traces, ptrace.SpanSlice) {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "benchmark")
	return traces, resource.ScopeSpans().AppendEmpty().Spans()
}

func identify(span ptrace.Span, i int) {
	trace := pcommon.TraceID{byte(i), byte(i >> 8), byte(i >> 16), 1}
	copy(trace[len(trace)-len(idMark):], idMark)
	span.SetTraceID(trace)
	span.SetSpanID(pcommon.SpanID{byte(i), byte(i >> 8), byte(i >> 16), 1})
}
