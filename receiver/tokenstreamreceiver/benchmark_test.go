// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/protobuf/proto"

	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

const (
	benchStreams = 20
	benchTokens  = 500
)

// benchmark measures the cost per token from the bytes of a request to the consumer.
func benchmark(b *testing.B, wire []byte, read func(r *ingest.Request) error) {
	benchmarkOn(b, nil, wire, read)
}

// benchmarkOn keeps open streams in the storage of a host, if that is not nil.
func benchmarkOn(b *testing.B, host component.Host, wire []byte, read func(r *ingest.Request) error) {
	next := new(consumertest.TracesSink)
	cfg := createDefaultConfig().(*Config)
	if host != nil {
		stored(cfg)
	}
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type))
	require.NoError(b, err)
	r.sendTraces(next)
	require.NoError(b, r.openStorage(b.Context(), host))
	b.Cleanup(func() { require.NoError(b, r.ingester.Store.CloseJournal(context.Background())) })
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: r.settings.ID, ReceiverCreateSettings: r.settings})
	require.NoError(b, err)
	var applied ingest.Answer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spans := 0
	b.ResetTimer()
	for range b.N {
		req := r.ingester.Take(report, false, &applied)
		require.NoError(b, read(req))
		require.Nil(b, req.Commit(b.Context()))
		r.ingester.Put(req)
		spans += next.SpanCount()
		next.Reset()
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	require.Equal(b, b.N*benchStreams, spans)
	tokens := float64(b.N * benchStreams * benchTokens)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/tokens, "ns/token")
	b.ReportMetric(float64(len(wire))/(benchStreams*benchTokens), "B/token")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/tokens, "allocs/token")
}

func benchDeltas() []int64 {
	deltas := make([]int64, benchTokens)
	for i := 1; i < benchTokens; i++ {
		deltas[i] = 20_000 + int64(i%1000)
	}
	return deltas
}

func BenchmarkProtobuf(b *testing.B) {
	wire := encodeWhole(b, benchStreams, benchTokens, func(int) []*commonv1.KeyValue { return nil })
	benchmark(b, wire, func(r *ingest.Request) error { return r.ReadProtobuf(wire) })
}

// BenchmarkStorage sends each stream in several requests, one after the other, like a service that
// sends every second. Each one waits for a write of its own. Compare file_storage with none.
func BenchmarkStorage(b *testing.B) {
	for _, parts := range []int{10, 100} {
		for name, host := range map[string]func() component.Host{
			"none":         func() component.Host { return nil },
			"file_storage": func() component.Host { return storagetest.NewHost(b) },
		} {
			b.Run(fmt.Sprintf("parts=%d/storage=%s", parts, name), func(b *testing.B) { benchmarkParts(b, parts, host()) })
		}
	}
}

// benchmarkParts sends each stream in as many requests as parts.
func benchmarkParts(b *testing.B, parts int, host component.Host) {
	wires := make([][]byte, parts)
	for part := range parts {
		message := &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
			Resource: &resourcev1.Resource{Attributes: []*commonv1.KeyValue{str("service.name", "chat")}},
		}}}
		for i := range benchStreams {
			stream := &tokenpulsev1.TokenStream{
				StreamId: fmt.Sprintf("stream-%d", i),
				ChunkRuns: []*tokenpulsev1.ChunkRun{{
					TimeUnixNano: at(time.Duration(part+1) * 20 * time.Second / time.Duration(parts)), DeltaUnitNanos: 1000, TimeDeltas: benchDeltas()[:benchTokens/parts],
				}},
			}
			if part == 0 {
				stream.Start = &tokenpulsev1.StreamStart{TimeUnixNano: t0, Attributes: []*commonv1.KeyValue{str("gen_ai.request.model", "llama-3-70b")}}
			}
			if part == parts-1 {
				stream.End = &tokenpulsev1.StreamEnd{FinishReason: "stop"}
			}
			message.ResourceTokenStreams[0].TokenStreams = append(message.ResourceTokenStreams[0].TokenStreams, stream)
		}
		var err error
		wires[part], err = proto.Marshal(message)
		require.NoError(b, err)
	}
	benchmarkOn(b, host, bytes.Join(wires, nil), func(r *ingest.Request) error {
		for _, wire := range wires[:parts-1] {
			if err := r.ReadProtobuf(wire); err != nil {
				return err
			}
			if refused := r.Commit(b.Context()); refused != nil {
				return errors.New(refused.Message)
			}
		}
		return r.ReadProtobuf(wires[parts-1])
	})
}

func BenchmarkNDJSON(b *testing.B) {
	var body bytes.Buffer
	for i := range benchStreams {
		fmt.Fprintf(&body, `{"event":"start","stream_id":"stream-%d","time_unix_nano":"%d","resource":{"service.name":"chat"},"attributes":{"gen_ai.operation.name":"chat","gen_ai.request.model":"llama-3-70b","gen_ai.provider.name":"vllm"}}`+"\n", i, int64(t0))
	}
	time := at(200 * time.Millisecond)
	random := rand.New(rand.NewPCG(1, 2))
	for _, delta := range benchDeltas() {
		time += uint64(delta) * 1000
		// Streams are interleaved in random order.
		for _, i := range random.Perm(benchStreams) {
			fmt.Fprintf(&body, `{"event":"chunk","stream_id":"stream-%d","time_unix_nano":"%d","tokens":1,"channel":"content"}`+"\n", i, time)
		}
	}
	for i := range benchStreams {
		fmt.Fprintf(&body, `{"event":"end","stream_id":"stream-%d","finish_reason":"stop","usage":{"output_tokens":500}}`+"\n", i)
	}
	wire := body.Bytes()
	reader := bytes.NewReader(wire)
	var lines *ingest.LineReader
	benchmark(b, wire, func(r *ingest.Request) error {
		reader.Reset(wire)
		if lines == nil {
			lines = ingest.NewLineReader(64<<10, assembly.NewStore(assembly.Limits{MaxMemory: 1 << 30}, nil))
		}
		defer lines.Close()
		if err := lines.Reset(reader); err != nil {
			return err
		}
		for lines.Fill() == nil {
			if refused := r.ReadLines(lines); refused != nil {
				return refused
			}
		}
		return nil
	})
}
