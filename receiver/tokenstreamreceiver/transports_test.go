// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

const t0 = 1_795_233_292_181_556_000

func at(offset time.Duration) uint64 { return uint64(t0 + int64(offset)) }

func str(key, value string) *commonv1.KeyValue {
	return &commonv1.KeyValue{Key: key, Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: value}}}
}

const (
	traceHex  = "0af7651916cd43dd8448eb211c80319c"
	spanHex   = "b7ad6b7169203331"
	parentHex = "00f067aa0ba902b7"
)

// wholeMessage is two streams: one with all fields, one that failed and has few.
func wholeMessage() *tokenpulsev1.ExportTokenStreamsRequest {
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
		Resource: &resourcev1.Resource{Attributes: []*commonv1.KeyValue{str("service.name", "chat")}},
		TokenStreams: []*tokenpulsev1.TokenStream{
			{
				StreamId: "s1",
				Start: &tokenpulsev1.StreamStart{
					TimeUnixNano: t0, TraceId: mustHex(traceHex), SpanId: mustHex(spanHex), ParentSpanId: mustHex(parentHex),
					Vantage: tokenpulsev1.Vantage_VANTAGE_CLIENT,
					Attributes: []*commonv1.KeyValue{
						str("gen_ai.operation.name", "chat"), str("gen_ai.request.model", "llama-3-70b"), str("tier", "gold"),
					},
				},
				ScheduledTimeUnixNano: at(50 * time.Millisecond),
				ChunkRuns: []*tokenpulsev1.ChunkRun{
					{Channel: tokenpulsev1.Channel_CHANNEL_REASONING, TimeUnixNano: at(200 * time.Millisecond), TimeDeltas: []int64{0, 20_000_000}},
					{TimeUnixNano: at(300 * time.Millisecond), DeltaUnitNanos: 1000, TimeDeltas: []int64{0, 25_000, 30_000}, Tokens: []uint32{3, 0, 1}},
				},
				End: &tokenpulsev1.StreamEnd{
					TimeUnixNano: at(400 * time.Millisecond), FinishReason: "stop",
					Usage:      &tokenpulsev1.Usage{InputTokens: proto.Uint64(17), OutputTokens: proto.Uint64(6), ReasoningTokens: proto.Uint64(2), CachedInputTokens: proto.Uint64(0), CacheWriteInputTokens: proto.Uint64(5)},
					Attributes: []*commonv1.KeyValue{str("tier", "silver")},
				},
			},
			{
				StreamId: "s2",
				Start:    &tokenpulsev1.StreamStart{TimeUnixNano: at(time.Second)},
				End:      &tokenpulsev1.StreamEnd{Error: "upstream said no"},
			},
		},
	}}}
}

func wholeLines() []string {
	line := fmt.Sprintf
	return []string{
		line(`{"event":"start","stream_id":"s1","time_unix_nano":"%d","trace_id":%q,"span_id":%q,"parent_span_id":%q,"vantage":"client","resource":{"service.name":"chat"},"attributes":{"gen_ai.operation.name":"chat","gen_ai.request.model":"llama-3-70b","tier":"gold"}}`, at(0), traceHex, spanHex, parentHex),
		line(`{"event":"start","stream_id":"s2","time_unix_nano":%d,"resource":{"service.name":"chat"}}`, at(time.Second)),
		line(`{"event":"scheduled","stream_id":"s1","time_unix_nano":"%d"}`, at(50*time.Millisecond)),
		line(`{"event":"chunk","stream_id":"s1","time_unix_nano":"%d","channel":"reasoning"}`, at(200*time.Millisecond)),
		line(`{"event":"chunk","stream_id":"s1","time_unix_nano":%d,"channel":"reasoning","text":"never kept"}`, at(220*time.Millisecond)),
		line(`{"event":"chunk","stream_id":"s1","time":%q,"tokens":3}`, time.Unix(0, int64(at(300*time.Millisecond))).UTC().Format(time.RFC3339Nano)),
		line(`{"event":"chunk","stream_id":"s1","time_unix_nano":"%d","tokens":0}`, at(325*time.Millisecond)),
		line(`{"event":"chunk","stream_id":"s1","time_unix_nano":"%d","tokens":1,"channel":"content"}`, at(355*time.Millisecond)),
		line(`{"event":"end","stream_id":"s2","error":"upstream said no"}`),
		line(`{"event":"end","stream_id":"s1","time_unix_nano":"%d","usage":{"input_tokens":17,"output_tokens":6,"reasoning_tokens":2,"cached_input_tokens":0,"cache_write_input_tokens":5},"finish_reason":"stop","attributes":{"tier":"silver"}}`, at(400*time.Millisecond)),
	}
}

// wholeSpans is the spans of the two streams.
func wholeSpans() []span {
	return []span{
		{
			Name: "chat llama-3-70b", Kind: "Client", Trace: traceHex, ID: spanHex, Parent: parentHex,
			Start: at(0), End: at(400 * time.Millisecond), Status: "Unset",
			Attributes: map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.request.model": "llama-3-70b", "tier": "silver",
				"tokenpulse.vantage": "client", "tokenpulse.outcome": "success", "tokenpulse.queue.duration": 0.05,
				"gen_ai.usage.input_tokens": int64(17), "gen_ai.usage.output_tokens": int64(6),
				"gen_ai.usage.reasoning.output_tokens": int64(2), "gen_ai.usage.cache_read.input_tokens": int64(0),
				"gen_ai.usage.cache_write.input_tokens": int64(5),
				"gen_ai.response.finish_reasons":        []any{"stop"},
			},
			Resource: map[string]any{"service.name": "chat"},
			Chunks: []chunk{
				{200 * time.Millisecond, 1, timeline.Reasoning},
				{220 * time.Millisecond, 1, timeline.Reasoning},
				{300 * time.Millisecond, 3, timeline.Content},
				{355 * time.Millisecond, 1, timeline.Content},
			},
		},
		{
			Name: "token_stream", Kind: "Server", Start: at(time.Second), End: at(time.Second),
			Status: "Error", Message: "upstream said no",
			Attributes: map[string]any{"tokenpulse.vantage": "server", "tokenpulse.outcome": "error"},
			Resource:   map[string]any{"service.name": "chat"},
		},
	}
}

// The same streams become the same spans over every transport and in every format.
func TestTransports_Agree(t *testing.T) {
	message := wholeMessage()
	encoded, err := proto.Marshal(message)
	require.NoError(t, err)
	mapped, err := protojson.Marshal(message)
	require.NoError(t, err)
	base64To := func(s, hexID string) string {
		return strings.ReplaceAll(s, base64.StdEncoding.EncodeToString(mustHex(hexID)), hexID)
	}
	hexed := base64To(base64To(base64To(string(mapped), traceHex), spanHex), parentHex)
	require.Contains(t, hexed, traceHex)
	body := strings.Join(wholeLines(), "\n")
	ok := func(t *testing.T, r reply, accepted int) {
		require.Equal(t, 200, r.status)
		require.Equal(t, answer{Accepted: accepted}, r.answer)
	}

	tests := map[string]func(t *testing.T, b *bench){
		"NDJSON":                 func(t *testing.T, b *bench) { ok(t, b.lines(t, wholeLines()...), 10) },
		"NDJSON, last line open": func(t *testing.T, b *bench) { ok(t, b.post(t, typeNDJSON, strings.NewReader(body)), 10) },
		"NDJSON, CRLF, blank lines": func(t *testing.T, b *bench) {
			ok(t, b.post(t, typeNDJSON+"; charset=utf-8", strings.NewReader(strings.Join(wholeLines(), "\r\n \r\n"))), 10)
		},
		"NDJSON, a request a line": func(t *testing.T, b *bench) {
			for _, line := range wholeLines() {
				ok(t, b.lines(t, line), 1)
			}
		},
		"NDJSON, live": func(t *testing.T, b *bench) {
			l := b.live(t)
			for _, line := range wholeLines() {
				l.send(t, line)
			}
			eventually(t, func() bool { return len(b.sink.all()) == 2 }, "ends are delivered while the body is open")
			require.NoError(t, l.Close())
			ok(t, l.wait(t), 10)
		},
		"NDJSON, gzip": func(t *testing.T, b *bench) {
			ok(t, b.post(t, typeNDJSON, bytes.NewReader(servertest.Compress(t, "gzip", []byte(body))), "Content-Encoding", "gzip"), 10)
		},
		"NDJSON, zstd": func(t *testing.T, b *bench) {
			ok(t, b.post(t, typeNDJSON, bytes.NewReader(servertest.Compress(t, "zstd", []byte(body))), "Content-Encoding", "zstd"), 10)
		},
		"JSON":                     func(t *testing.T, b *bench) { ok(t, b.post(t, typeJSON, bytes.NewReader(mapped)), 2) },
		"JSON, ids in hexadecimal": func(t *testing.T, b *bench) { ok(t, b.post(t, typeJSON, strings.NewReader(hexed)), 2) },
		"protobuf":                 func(t *testing.T, b *bench) { ok(t, b.post(t, typeProtobuf, bytes.NewReader(encoded)), 2) },
		"protobuf, gzip": func(t *testing.T, b *bench) {
			ok(t, b.post(t, typeProtobuf, bytes.NewReader(servertest.Compress(t, "gzip", encoded)), "Content-Encoding", "gzip"), 2)
		},
		"protobuf, zstd": func(t *testing.T, b *bench) {
			ok(t, b.post(t, typeProtobuf, bytes.NewReader(servertest.Compress(t, "zstd", encoded)), "Content-Encoding", "zstd"), 2)
		},
		"gRPC, Export": func(t *testing.T, b *bench) {
			response, err := b.grpc(t).Export(t.Context(), message)
			require.NoError(t, err)
			require.Nil(t, response.GetPartialSuccess())
		},
		"gRPC, Stream, in parts": func(t *testing.T, b *bench) {
			stream, err := b.grpc(t).Stream(t.Context())
			require.NoError(t, err)
			for _, part := range parts(message) {
				require.NoError(t, stream.Send(part))
			}
			eventually(t, func() bool { return len(b.sink.all()) == 2 }, "ends are delivered while the call is open")
			response, err := stream.CloseAndRecv()
			require.NoError(t, err)
			require.Nil(t, response.GetPartialSuccess())
		},
	}
	for name, send := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			send(t, b)
			got := b.sink.all()
			require.Len(t, got, 2)
			// Derived IDs do not depend on the transport.
			require.Equal(t, derivedTrace, got[1].Trace)
			require.Equal(t, derivedSpan, got[1].ID)
			got[1].Trace, got[1].ID = "", ""
			require.Equal(t, asJSON(t, wholeSpans()), asJSON(t, got))
			require.Zero(t, b.ingester.Store.Streams())
			require.Zero(t, b.ingester.Store.Memory())
			requireMetric(t, b, "streams_finished", map[string]string{"outcome": "success"}, 1)
			requireMetric(t, b, "streams_finished", map[string]string{"outcome": "error"}, 1)
		})
	}
}

// sha256 over 32 zero bytes of ids, the start in nanoseconds (big endian), "s2",
// a zero byte, and the resource as an encoded KeyValueList.
const (
	derivedTrace = "9a124672f5a00e4862f56ced81ab57d5"
	derivedSpan  = "264add8a43c8cdd4"
)

// parts splits a request: one message for the start, one for each run of chunks and one
// for the end.
func parts(message *tokenpulsev1.ExportTokenStreamsRequest) (out []*tokenpulsev1.ExportTokenStreamsRequest) {
	for _, resource := range message.GetResourceTokenStreams() {
		part := func(stream *tokenpulsev1.TokenStream) {
			out = append(out, &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{
				{Resource: resource.GetResource(), TokenStreams: []*tokenpulsev1.TokenStream{stream}},
			}})
		}
		for _, stream := range resource.GetTokenStreams() {
			part(&tokenpulsev1.TokenStream{StreamId: stream.GetStreamId(), Start: stream.GetStart()})
			part(&tokenpulsev1.TokenStream{StreamId: stream.GetStreamId(), ScheduledTimeUnixNano: stream.GetScheduledTimeUnixNano()})
			for _, run := range stream.GetChunkRuns() {
				part(&tokenpulsev1.TokenStream{StreamId: stream.GetStreamId(), ChunkRuns: []*tokenpulsev1.ChunkRun{run}})
			}
			part(&tokenpulsev1.TokenStream{StreamId: stream.GetStreamId(), End: stream.GetEnd()})
		}
	}
	return out
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(out)
}

func mustHex(s string) []byte {
	id, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return id
}
