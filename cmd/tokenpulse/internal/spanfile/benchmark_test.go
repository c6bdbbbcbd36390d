// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
)

// batch returns spans of chat requests as an instrumentation writes them, without timelines.
func batch(spans int) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "service")
	scope := resource.ScopeSpans().AppendEmpty()
	for i := range spans {
		span := scope.Spans().AppendEmpty()
		var id [16]byte
		binary.BigEndian.PutUint64(id[8:], uint64(i+1))
		span.SetTraceID(id)
		span.SetSpanID([8]byte(id[8:]))
		span.SetName("chat llama-3.1-8b")
		span.SetStartTimestamp(1795233292481556000)
		span.SetEndTimestamp(1795233294481556000)
		attributes := span.Attributes()
		attributes.PutStr("gen_ai.operation.name", "chat")
		attributes.PutStr("gen_ai.provider.name", "vllm")
		attributes.PutStr("gen_ai.request.model", "llama-3.1-8b")
		attributes.PutInt("gen_ai.usage.input_tokens", 400)
		attributes.PutInt("gen_ai.usage.output_tokens", int64(i))
		attributes.PutDouble("tokenpulse.time_to_first_token", 0.353929)
	}
	return traces
}

// BenchmarkRead reads a million spans, and decodes the same messages without a file. Peak is the heap beyond that before.
func BenchmarkRead(b *testing.B) {
	const spans, size = 1_000_000, 1000
	inJSON, err := new(ptrace.JSONMarshaler).MarshalTraces(batch(size))
	require.NoError(b, err)
	inProto, err := new(ptrace.ProtoMarshaler).MarshalTraces(batch(size))
	require.NoError(b, err)
	for _, format := range []struct {
		name    string
		encoded []byte
		message []byte
		decode  func([]byte) (ptrace.Traces, error)
	}{
		{"json", append(bytes.Clone(inJSON), '\n'), inJSON, new(ptrace.JSONUnmarshaler).UnmarshalTraces},
		{"proto", prefixed(inProto), inProto, new(ptrace.ProtoUnmarshaler).UnmarshalTraces},
		{"bare proto", inProto, inProto, new(ptrace.ProtoUnmarshaler).UnmarshalTraces},
		{"json in zstd", prefixed(zstandard(b, inJSON)), nil, nil},
		{"proto in zstd", prefixed(zstandard(b, inProto)), nil, nil},
	} {
		if format.decode != nil {
			b.Run(format.name+"/decode", func(b *testing.B) {
				for b.Loop() {
					got := 0
					for range spans / size {
						traces, err := format.decode(format.message)
						if err != nil {
							b.Fatal(err)
						}
						got += traces.SpanCount()
					}
					require.Equal(b, spans, got)
				}
			})
		}
		b.Run(format.name+"/read", func(b *testing.B) {
			var peak uint64
			var memory runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&memory)
			before := memory.HeapAlloc
			for b.Loop() {
				got, messages := 0, 0
				content := io.LimitReader(&repeater{text: string(format.encoded)}, int64(len(format.encoded))*spans/size)
				_, err := Read(context.Background(), openfile.New(context.Background(), "file", content, nil), Sink{
					Traces: func(traces ptrace.Traces) error {
						got += traces.SpanCount()
						if messages++; messages%100 == 0 {
							runtime.ReadMemStats(&memory)
							peak = max(peak, memory.HeapAlloc-before)
						}
						return nil
					},
					Damaged: func(err error) error { return fmt.Errorf("no message is damaged: %w", err) },
				})
				require.NoError(b, err)
				require.Equal(b, spans, got)
			}
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
		})
	}
}
