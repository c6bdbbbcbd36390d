// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

func manyStreams(n int, resource string) *tokenpulsev1.ExportTokenStreamsRequest {
	all := &tokenpulsev1.ResourceTokenStreams{Resource: &resourcev1.Resource{
		Attributes: []*commonv1.KeyValue{str("service.name", resource)},
	}}
	for i := range n {
		all.TokenStreams = append(all.TokenStreams, &tokenpulsev1.TokenStream{
			StreamId: strconv.Itoa(i), Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0}, End: &tokenpulsev1.StreamEnd{},
		})
	}
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{all}}
}

func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// The streams of a message share the memory of its resource.
func TestResource_IsShared(t *testing.T) {
	b := start(t)
	wire, err := proto.Marshal(manyStreams(5000, strings.Repeat("r", 60_000)))
	require.NoError(t, err)
	require.Less(t, len(wire), 200_000)
	var applied ingest.Answer
	req := take(t, b.tokenStreamReceiver, &applied)
	defer b.ingester.Put(req)
	require.Less(t, allocated(func() { require.NoError(t, req.ReadProtobuf(wire)) }), int64(16<<20))
	require.Nil(t, req.Commit(t.Context()))
	require.Equal(t, 5000, applied.Accepted)
	require.Len(t, b.sink.all(), 5000)
	require.Len(t, b.sink.all()[7].Resource["service.name"], 60_000)
}

func TestRequest_LimitsStreams(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxStreams, c.MaxSharePerClient = 200_000, 1 })
	const message = "the request has more than 131072 streams; send them in smaller requests"
	tooMany := manyStreams(140_000, "chat")
	wire, err := proto.Marshal(tooMany)
	require.NoError(t, err)
	got := b.post(t, typeProtobuf, bytes.NewReader(wire))
	require.Equal(t, 413, got.status)
	require.Equal(t, answer{Errors: []answerError{{Message: message}}}, got.answer)
	_, err = b.grpc(t).Export(t.Context(), tooMany)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, message)

	var lines strings.Builder
	for i := range 140_000 {
		lines.WriteString(startLine(strconv.Itoa(i)) + "\n")
	}
	got = b.post(t, typeNDJSON, strings.NewReader(lines.String()))
	require.Equal(t, 413, got.status)
	require.Zero(t, b.ingester.Store.Streams(), "nothing was applied")
	requireMetric(t, b, "events_rejected", map[string]string{"reason": "limit"}, 3)

	l := b.live(t)
	_, err = l.Write([]byte(lines.String()))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Equal(t, answer{Accepted: 140_000}, l.wait(t).answer, "a live body is applied line by line")
}

func TestJSON_LimitsObjects(t *testing.T) {
	b := start(t)
	body := `{"resourceTokenStreams":[{"tokenStreams":[{}` + strings.Repeat(`,{}`, 3_000_000) + `]}]}`
	small := servertest.Compress(t, "gzip", []byte(body))
	used := allocated(func() {
		got := b.post(t, typeJSON, bytes.NewReader(small), "Content-Encoding", "gzip")
		require.Equal(t, 413, got.status)
		require.Equal(t, "the body has more than 262144 JSON objects; send smaller requests, or protobuf", got.answer.Errors[0].Message)
	})
	require.Less(t, used, int64(100<<20))
}

// Events too far from a start that follows them are rejected, not the stream.
func TestStart_AfterEventsTooFarFromIt(t *testing.T) {
	far := func(event string) string {
		return fmt.Sprintf(`{"event":%q,"stream_id":"healthy","time_unix_nano":"%d"}`, event, at(48*time.Hour))
	}
	for _, event := range []string{"chunk", "scheduled", "end"} {
		t.Run(event, func(t *testing.T) {
			b := start(t)
			got := b.lines(t, append([]string{far(event)}, healthyLines()...)...)
			require.Equal(t, 200, got.status)
			require.Equal(t, answer{Accepted: 4, Rejected: 1, Errors: []answerError{{
				Line: 1, Message: "the time is 48 hours after the start of stream \"healthy\", at most 24 hours are allowed; check that all times are nanoseconds since 1970",
			}}}, got.answer)
			requireHealthy(t, b)
			requireMetric(t, b, "events_rejected", map[string]string{"reason": "invalid"}, 1)
		})
	}
}

func TestStreamID_TwoStreamsWithOne(t *testing.T) {
	const says = `stream "s" is already open with another start time; use a stream_id that is unique among all senders`
	other := fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d"}`, at(time.Second))
	for name, split := range map[string]bool{"in one request": false, "in two": true} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			want := answer{Accepted: 2, Rejected: 1, Errors: []answerError{{Line: 3, Message: says}}}
			if split {
				require.Equal(t, 200, b.lines(t, startLine("s")).status)
				want.Accepted, want.Errors[0].Line = 1, 2
				require.Equal(t, want, b.lines(t, startLine("s"), other).answer, "an identical one is a repeat")
			} else {
				require.Equal(t, want, b.lines(t, startLine("s"), startLine("s"), other).answer)
			}
			require.Equal(t, 200, b.lines(t, endLine("s")).status)
			require.Equal(t, at(0), b.sink.one(t).Start)
		})
	}
	b := start(t)
	ids := func(trace string) string {
		return fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d","trace_id":%q}`, at(0), trace)
	}
	require.Equal(t, 200, b.lines(t, ids(traceHex)).status)
	require.Contains(t, b.lines(t, ids(strings.Repeat("7", 32))).answer.Errors[0].Message, "already open with another trace_id")
	require.Equal(t, answer{Accepted: 1}, b.lines(t, startLine("s")).answer, "without a trace_id")
}

// Ignored fields are not checked for duplicate names.
func TestNDJSON_IgnoredFieldsAreNotChecked(t *testing.T) {
	b := start(t)
	got := b.lines(t, startLine("healthy"),
		chunkLine("healthy", time.Millisecond, `"delta":{"content":"\ud83d"}`),
		chunkLine("healthy", 2*time.Millisecond, `"choices":[{"a":1,"a":2}]`),
		chunkLine("healthy", 3*time.Millisecond, `"delta":{"content":}`),
		endLine("healthy"))
	require.Equal(t, 4, got.answer.Accepted)
	require.Equal(t, 4, got.answer.Errors[0].Line)
	requireHealthy(t, b)
}
