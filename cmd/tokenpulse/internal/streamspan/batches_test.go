// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/streamspan"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spansOf returns the spans of a recording, and the size of each batch.
func spansOf(t *testing.T, recorded []byte, service string) (spans map[string]ptrace.ResourceSpans, sizes []int) {
	t.Helper()
	k, ok := recording.Detect(recorded)
	require.True(t, ok)
	spans = map[string]ptrace.ResourceSpans{}
	batches := streamspan.Batches{Service: service, Yield: func(traces ptrace.Traces) error {
		sizes = append(sizes, traces.SpanCount())
		single(traces, spans)
		return nil
	}}
	require.NoError(t, recording.Scanner{}.Scan(t.Context(), bytes.NewReader(recorded), k, batches.Add))
	require.NoError(t, batches.Flush())
	return spans, sizes
}

// single adds each span with its resource, by its start and end, of which no two spans have the same here.
func single(traces ptrace.Traces, to map[string]ptrace.ResourceSpans) {
	for _, group := range traces.ResourceSpans().All() {
		for _, scope := range group.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				one := ptrace.NewResourceSpans()
				group.Resource().CopyTo(one.Resource())
				span.CopyTo(one.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
				to[fmt.Sprint(span.StartTimestamp(), span.EndTimestamp(), span.Attributes().Len())] = one
			}
		}
	}
}

// received posts token events to the receiver, and returns the spans that it sends on.
func received(t *testing.T, events []byte, service string) map[string]ptrace.ResourceSpans {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := listener.Addr().String()
	require.NoError(t, listener.Close())
	factory := tokenstreamreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": endpoint}}, "service_name": service,
	}).Unmarshal(cfg))
	sink := new(consumertest.TracesSink)
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	response, err := http.Post("http://"+endpoint+"/v1/tokens", "application/x-ndjson", bytes.NewReader(events)) //nolint:noctx // of a test
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, r.Shutdown(t.Context()))
	http.DefaultClient.CloseIdleConnections()
	spans := map[string]ptrace.ResourceSpans{}
	for _, traces := range sink.AllTraces() {
		single(traces, spans)
	}
	return spans
}

// odd are streams that test what a receiver does with a stream, besides keeping it.
const odd = `{"event":"start","stream_id":"unordered","time_unix_nano":"1795233292000000001","vantage":"gateway","attributes":{"gen_ai.request.model":"m","tokenpulse.outcome":"success","error.type":"quotes a prompt","list":[1,2.5,"x",{"k":true}],"none":null}}
{"event":"scheduled","stream_id":"unordered","time_unix_nano":"1795233292000000101"}
{"event":"chunk","stream_id":"unordered","time_unix_nano":"1795233292300000003","seq":2}
{"event":"chunk","stream_id":"unordered","time_unix_nano":"1795233292100000007","seq":1,"tokens":3,"channel":"reasoning"}
{"event":"chunk","stream_id":"unordered","time_unix_nano":"1795233292400000007","seq":2}
{"event":"chunk","stream_id":"unordered","time_unix_nano":"1795233292900000007","tokens":0}
{"event":"end","stream_id":"unordered","time_unix_nano":"1795233292800000000","usage":{"input_tokens":5,"output_tokens":4,"reasoning_tokens":3,"cached_input_tokens":2,"cache_write_input_tokens":1},"finish_reason":"stop","attributes":{"late":1}}
{"event":"start","stream_id":"partly numbered","time_unix_nano":"1795233293000000001","resource":{"service.name":"own","host.name":"h"},"parent_span_id":"b7ad6b7169203331"}
{"event":"chunk","stream_id":"partly numbered","time_unix_nano":"1795233293300000003","seq":7}
{"event":"chunk","stream_id":"partly numbered","time_unix_nano":"1795233293200000003"}
{"event":"chunk","stream_id":"partly numbered","time_unix_nano":"1795233293100000003","seq":9}
{"event":"end","stream_id":"partly numbered"}
{"event":"start","stream_id":"failed","time_unix_nano":"1795233294000000001"}
{"event":"chunk","stream_id":"failed","time_unix_nano":"1795233294100000001"}
{"event":"end","stream_id":"failed","time_unix_nano":"1795233294200000001","error":"overloaded","attributes":{"http.response.status_code":503}}
{"event":"start","stream_id":"cancelled","time_unix_nano":"1795233295000000001","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331"}
{"event":"end","stream_id":"cancelled","time_unix_nano":"1795233295200000001","cancelled":true}
{"event":"start","stream_id":"empty","time_unix_nano":"1795233296000000001"}
{"event":"end","stream_id":"empty","time_unix_nano":"1795233296200000001","finish_reason":"stop"}
{"event":"start","stream_id":"only usage","time_unix_nano":"1795233297000000001"}
{"event":"end","stream_id":"only usage","time_unix_nano":"1795233297200000001","usage":{"output_tokens":3}}
{"event":"start","stream_id":"aborted","time_unix_nano":"1795233298000000001","vantage":"engine"}
{"event":"chunk","stream_id":"aborted","time_unix_nano":"1795233298100000001"}
{"event":"end","stream_id":"aborted","time_unix_nano":"1795233298200000001","finish_reason":"abort"}
`

// The spans of a recording are those that the receiver makes of its events, except for derived IDs.
func TestBatches_EqualSpansOfTheReceiver(t *testing.T) {
	demo, err := os.ReadFile(testenv.Data(t, "recordings/demo.jsonl"))
	require.NoError(t, err)
	for name, events := range map[string][]byte{
		"AIPerf recording": testenv.Unzip(t, testenv.Data(t, testenv.RecordingFile)), "demo": demo, "odd streams": []byte(odd),
	} {
		t.Run(name, func(t *testing.T) {
			expected := received(t, events, "svc")
			actual, _ := spansOf(t, events, "svc")
			require.Len(t, actual, len(expected))
			require.Greater(t, len(expected), 6)
			for key, want := range expected {
				got, ok := actual[key]
				require.True(t, ok, key)
				requireEqualSpans(t, want, got)
			}
		})
	}
}

func requireEqualSpans(t *testing.T, want, got ptrace.ResourceSpans) {
	t.Helper()
	require.Equal(t, want.Resource().Attributes().AsRaw(), got.Resource().Attributes().AsRaw())
	a, b := want.ScopeSpans().At(0).Spans().At(0), got.ScopeSpans().At(0).Spans().At(0)
	require.Equal(t, a.Attributes().AsRaw(), b.Attributes().AsRaw(), a.Name())
	require.Equal(t, a.Name(), b.Name())
	require.Equal(t, a.Kind(), b.Kind())
	require.Equal(t, a.Status().Code(), b.Status().Code())
	require.Equal(t, a.Status().Message(), b.Status().Message())
	require.Equal(t, a.ParentSpanID(), b.ParentSpanID())
	require.Equal(t, a.StartTimestamp(), b.StartTimestamp())
	require.Equal(t, a.EndTimestamp(), b.EndTimestamp())
}

func TestBatches_HoldUpTo256Spans(t *testing.T) {
	var events strings.Builder
	for i := range 600 {
		fmt.Fprintf(&events, `{"event":"start","stream_id":"s%d","time_unix_nano":"%d"}`+"\n"+`{"event":"end","stream_id":"s%[1]d","time_unix_nano":"%d"}`+"\n", i, 1795233292000000000+int64(i), int64(1795233293000000000))
	}
	spans, sizes := spansOf(t, []byte(events.String()), "")
	require.Equal(t, []int{256, 256, 88}, sizes)
	require.Len(t, spans, 600)
}

// A recording that is read again, or continues, has the same IDs; streams that differ have others.
func TestBatches_IDsFollowFromContent(t *testing.T) {
	idsOf := func(streams ...*stream.Stream) (ids [][24]byte) {
		batches := streamspan.Batches{Yield: func(traces ptrace.Traces) error {
			for _, group := range traces.ResourceSpans().All() {
				for _, span := range group.ScopeSpans().At(0).Spans().All() {
					trace, own := span.TraceID(), span.SpanID()
					ids = append(ids, [24]byte(append(trace[:], own[:]...)))
				}
			}
			return nil
		}}
		for _, s := range streams {
			require.NoError(t, batches.Add(s))
		}
		require.NoError(t, batches.Flush())
		return ids
	}
	one := func(change func(*stream.Stream)) *stream.Stream {
		s := &stream.Stream{ID: "s", Start: 10, Chunks: []stream.Chunk{{Time: 20, Tokens: 1}}, End: &stream.End{Time: 30}}
		change(s)
		return s
	}
	same := func(*stream.Stream) {}
	require.Equal(t, idsOf(one(same))[0], idsOf(one(func(s *stream.Stream) { s.Start = 9 }), one(same))[1])
	seen := map[[24]byte]string{}
	for name, change := range map[string]func(*stream.Stream){
		"same": same, "ID": func(s *stream.Stream) { s.ID = "t" }, "start": func(s *stream.Stream) { s.Start = 11 },
		"chunk":    func(s *stream.Stream) { s.Chunks[0].Time = 21 },
		"end":      func(s *stream.Stream) { s.End.Time = 31 },
		"no end":   func(s *stream.Stream) { s.End = nil },
		"resource": func(s *stream.Stream) { s.Resource = &stream.Resource{Attributes: stream.Attributes{"host.name": "h"}} },
	} {
		id := idsOf(one(change))[0]
		require.Empty(t, seen[id], name)
		seen[id] = name
	}
	own := one(func(s *stream.Stream) { s.TraceID, s.SpanID = bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 8) })
	require.Equal(t, [24]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}, idsOf(own)[0])
}
