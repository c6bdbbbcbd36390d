// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"fmt"
	"testing"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"go.uber.org/zap"
)

// BenchmarkAnnotatedSpans converts finished streams to annotated spans.
func BenchmarkAnnotatedSpans(b *testing.B) {
	for _, tokens := range []int{10, 500} {
		group := &tokenpulsev1.ResourceTokenStreams{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{textAttribute(names.ServiceName, "benchmark")}}}
		for i := range 500 {
			run := &tokenpulsev1.ChunkRun{TimeUnixNano: t0 + 400e6, DeltaUnitNanos: 1000, TimeDeltas: make([]int64, tokens)}
			for j := 1; j < tokens; j++ {
				run.TimeDeltas[j] = 15_000 + int64(i*j*7919%10_000)
			}
			group.TokenStreams = append(group.TokenStreams, &tokenpulsev1.TokenStream{
				StreamId: fmt.Sprint("stream-", i),
				Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0, Attributes: []*commonpb.KeyValue{
					textAttribute(names.GenAIOperationName, "chat"), textAttribute(names.GenAIProviderName, "vllm"), textAttribute(names.GenAIRequestModel, []string{"a", "b", "c", "d"}[i%4]),
				}},
				ChunkRuns: []*tokenpulsev1.ChunkRun{run},
				End:       &tokenpulsev1.StreamEnd{TimeUnixNano: t0 + 60e9, Usage: &tokenpulsev1.Usage{InputTokens: proto.Uint64(550), OutputTokens: proto.Uint64(uint64(tokens))}},
			})
		}
		finished := finishedStreams(b, &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{group}})
		require.Len(b, finished, 500)
		rules, err := judge.NewRules(nil, false)
		require.NoError(b, err)
		for name, settings := range map[string]Settings{"annotated": {Latency: annotate.DefaultConfig(), Rules: rules, Logger: zap.NewNop()}, "plain": {}} {
			b.Run(fmt.Sprint(name, "/tokens=", tokens), func(b *testing.B) {
				maker := New(&settings)
				b.ReportAllocs()
				for b.Loop() {
					maker.Make(finished, nil)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(finished)), "ns/stream")
			})
		}
	}
}
