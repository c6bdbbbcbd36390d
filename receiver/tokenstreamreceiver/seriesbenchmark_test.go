// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/collector/receiver/receivertest"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// idMark is the text in stream IDs that differs from request to request.
const idMark = "########"

// encodeWhole encodes a request of whole streams, whose IDs have the idMark.
func encodeWhole(tb testing.TB, streams, tokens int, more func(i int) []*commonv1.KeyValue) []byte {
	tb.Helper()
	resource := &tokenpulsev1.ResourceTokenStreams{
		Resource: &resourcev1.Resource{Attributes: []*commonv1.KeyValue{str("service.name", "benchmark")}},
	}
	models := []string{"llama-3-70b", "qwen-3-32b", "mixtral-8x22b", "gpt-oss-120b"}
	for i := range streams {
		deltas := make([]int64, tokens)
		for j := 1; j < tokens; j++ {
			deltas[j] = 15_000 + int64((i*131+j*7919)%10_000)
		}
		attributes := []*commonv1.KeyValue{
			str("gen_ai.operation.name", "chat"), str("gen_ai.provider.name", "vllm"), str("gen_ai.request.model", models[i%len(models)]),
		}
		resource.TokenStreams = append(resource.TokenStreams, &tokenpulsev1.TokenStream{
			StreamId:  fmt.Sprintf("bench-%s-%04d", idMark, i),
			Start:     &tokenpulsev1.StreamStart{TimeUnixNano: t0, Attributes: append(attributes, more(i)...)},
			ChunkRuns: []*tokenpulsev1.ChunkRun{{TimeUnixNano: at(300 * time.Millisecond), DeltaUnitNanos: 1000, TimeDeltas: deltas}},
			End: &tokenpulsev1.StreamEnd{
				TimeUnixNano: at(300*time.Millisecond + time.Duration(tokens)*25*time.Millisecond),
				Usage:        &tokenpulsev1.Usage{InputTokens: proto.Uint64(550), OutputTokens: proto.Uint64(uint64(tokens))},
			},
		})
	}
	encoded, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{resource}})
	require.NoError(tb, err)
	return encoded
}

// BenchmarkSeries measures whole streams from the bytes of a request to their series.
func BenchmarkSeries(b *testing.B) {
	for _, size := range []struct{ tokens, streams int }{{10, 500}, {100, 250}, {500, 50}, {10_000, 2}} {
		b.Run(fmt.Sprintf("tokens=%d", size.tokens), func(b *testing.B) {
			benchmarkSeries(b, encodeWhole(b, size.streams, size.tokens, func(int) []*commonv1.KeyValue { return nil }), size.streams, size.tokens)
		})
	}
	b.Run("alone=500", func(b *testing.B) { // a request for each stream, as a service without a queue sends them
		benchmarkSeries(b, encodeWhole(b, 1, 500, func(int) []*commonv1.KeyValue { return nil }), 1, 500)
	})
	b.Run("unique=10", func(b *testing.B) {
		body := encodeWhole(b, 500, 10, func(i int) []*commonv1.KeyValue {
			return []*commonv1.KeyValue{str("user.id", fmt.Sprintf("%s-%d", idMark, i))}
		})
		benchmarkSeries(b, body, 500, 10)
	})
}

func benchmarkSeries(b *testing.B, body []byte, streams, tokens int) {
	b.Helper()
	r, err := newReceiver(createDefaultConfig().(*Config), receivertest.NewNopSettings(metadata.Type))
	require.NoError(b, err)
	require.NoError(b, r.sendMetrics(consumertest.NewNop()))
	var marks []int
	for i := 0; i+len(idMark) <= len(body); i++ {
		if string(body[i:i+len(idMark)]) == idMark {
			marks = append(marks, i)
		}
	}
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: r.settings.ID, ReceiverCreateSettings: r.settings})
	require.NoError(b, err)
	var applied ingest.Answer
	var before, after runtime.MemStats
	number := 0
	send := func() {
		number++
		text := fmt.Appendf(nil, "%08d", number)
		for _, i := range marks {
			copy(body[i:], text)
		}
		req := r.ingester.Take(report, false, &applied)
		require.NoError(b, req.ReadProtobuf(body))
		require.Nil(b, req.Commit(b.Context()))
		r.ingester.Put(req)
	}
	send()
	send()
	applied = ingest.Answer{}
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for range b.N {
		send()
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	require.Equal(b, b.N*streams, applied.Accepted)
	each := float64(b.Elapsed().Nanoseconds()) / float64(b.N*streams)
	b.ReportMetric(each, "ns/stream")
	b.ReportMetric(each/float64(tokens), "ns/token")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N*streams), "allocs/stream")
}
