package main

import (
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// stream is what both paths tell in their own format. Times are Unix
// nanoseconds, in whole microseconds.
type stream struct {
	id     string
	model  string
	start  int64
	chunks []int64
}

var models = []string{"llama-3-70b", "qwen-3-32b", "mixtral-8x22b", "gpt-oss-120b"}

func plan(streams, tokens int) []stream {
	const (
		microsecond = 1000
		millisecond = 1000 * microsecond
	)
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]stream, streams)
	for i := range all {
		start := 1_795_233_292_000_000_000 + random.Int64N(1_000_000)*microsecond
		at := start + 200*millisecond + random.Int64N(400_000)*microsecond
		chunks := make([]int64, tokens)
		for j := range chunks {
			chunks[j] = at
			at += 15*millisecond + random.Int64N(10_000)*microsecond
		}
		all[i] = stream{id: fmt.Sprintf("stream-%04d", i), model: models[i%len(models)], start: start, chunks: chunks}
	}
	return all
}

// tokenStreams is one request of path (a): deltas in microseconds.
func tokenStreams(streams []stream) []byte {
	resource := &tokenpulsev1.ResourceTokenStreams{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attribute("service.name", "benchmark")}},
	}
	for _, s := range streams {
		run := &tokenpulsev1.ChunkRun{TimeUnixNano: uint64(s.chunks[0]), DeltaUnitNanos: 1000, TimeDeltas: make([]int64, len(s.chunks))}
		for i := 1; i < len(s.chunks); i++ {
			run.TimeDeltas[i] = (s.chunks[i] - s.chunks[i-1]) / 1000
		}
		resource.TokenStreams = append(resource.TokenStreams, &tokenpulsev1.TokenStream{
			StreamId: s.id,
			Start: &tokenpulsev1.StreamStart{TimeUnixNano: uint64(s.start), Attributes: []*commonpb.KeyValue{
				attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.provider.name", "vllm"), attribute("gen_ai.request.model", s.model),
			}},
			ChunkRuns: []*tokenpulsev1.ChunkRun{run},
			End: &tokenpulsev1.StreamEnd{
				TimeUnixNano: uint64(s.chunks[len(s.chunks)-1]),
				Usage:        &tokenpulsev1.Usage{InputTokens: new(uint64(550)), OutputTokens: new(uint64(len(s.chunks)))},
			},
		})
	}
	body, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{resource}})
	if err != nil {
		panic(err) // the message is made right here
	}
	return body
}

func attribute(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

// spanEvents is one request of path (b): what instrumentations send that add an
// event per chunk, under the name that OpenLLMetry gives it.
func spanEvents(streams []stream) []byte {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "benchmark")
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	for i, s := range streams {
		span := spans.AppendEmpty()
		span.SetTraceID(pcommon.TraceID{byte(i), byte(i >> 8), 1})
		span.SetSpanID(pcommon.SpanID{byte(i), byte(i >> 8), 1})
		span.SetName("chat " + s.model)
		span.SetStartTimestamp(pcommon.Timestamp(s.start))
		span.SetEndTimestamp(pcommon.Timestamp(s.chunks[len(s.chunks)-1]))
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.Attributes().PutStr("gen_ai.provider.name", "vllm")
		span.Attributes().PutStr("gen_ai.request.model", s.model)
		span.Attributes().PutInt("gen_ai.usage.input_tokens", 550)
		span.Attributes().PutInt("gen_ai.usage.output_tokens", int64(len(s.chunks)))
		for _, at := range s.chunks {
			event := span.Events().AppendEmpty()
			event.SetName("gen_ai.content.completion.chunk")
			event.SetTimestamp(pcommon.Timestamp(at))
		}
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	if err != nil {
		panic(err) // the message is made right here
	}
	return body
}
