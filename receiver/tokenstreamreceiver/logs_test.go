// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/receiver/receivertest"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// record makes a log record.
type record func(plog.LogRecord)

type attrs map[string]any

// event returns a record in the span parentHex of traceHex. Its attributes are in the
// order of their keys.
func event(name string, offset time.Duration, attributes attrs, change ...record) record {
	return func(r plog.LogRecord) {
		r.SetEventName(name)
		r.SetTimestamp(pcommon.Timestamp(at(offset)))
		inSpan(parentHex)(r)
		for _, key := range slices.Sorted(maps.Keys(attributes)) {
			if err := r.Attributes().PutEmpty(key).FromRaw(attributes[key]); err != nil {
				panic(err)
			}
		}
		for _, f := range change {
			f(r)
		}
	}
}

// inSpan sets the span of a record, or removes it for an empty id.
func inSpan(id string) record {
	return func(r plog.LogRecord) {
		var span [8]byte
		var trace [16]byte
		if id != "" {
			copy(span[:], mustHex(id))
			copy(trace[:], mustHex(traceHex))
		}
		r.SetSpanID(span)
		r.SetTraceID(trace)
	}
}

func mustHex(s string) []byte {
	id, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return id
}

func toLogs(records ...record) plog.Logs {
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "chat")
	scope := resource.ScopeLogs().AppendEmpty()
	for _, f := range records {
		f(scope.LogRecords().AppendEmpty())
	}
	return logs
}

// logsReply is the answer to a request of logs over HTTP or gRPC.
type logsReply struct {
	status     int // of HTTP; 200 for gRPC's OK
	err        error
	retryAfter string
	rejected   int64
	message    string
}

func (r logsReply) whole(t testing.TB) {
	t.Helper()
	require.Equal(t, logsReply{status: 200}, r)
}

// partly requires a partial success.
func (r logsReply) partly(t testing.TB, rejected int64, message string) {
	t.Helper()
	require.Equal(t, 200, r.status, r.message)
	require.Equal(t, rejected, r.rejected, r.message)
	require.Contains(t, r.message, message)
}

func (b *bench) logsURL() string { return "http://" + b.addrHTTP.String() + logsPath }

// logs sends records. how is "grpc", or a content type and optionally, after a space, a
// content encoding.
func (b *bench) logs(t testing.TB, how string, records ...record) logsReply {
	t.Helper()
	request := plogotlp.NewExportRequestFromLogs(toLogs(records...))
	if how == "grpc" {
		return b.logsGRPC(t, request)
	}
	contentType, encoding, _ := strings.Cut(how, " ")
	body, err := request.MarshalProto()
	if contentType == typeJSON {
		body, err = request.MarshalJSON()
	}
	require.NoError(t, err)
	if encoding == "" {
		return b.postLogs(t, contentType, body)
	}
	return b.postLogs(t, contentType, compress(t, encoding, body), "Content-Encoding", encoding)
}

func (b *bench) logsGRPC(t testing.TB, request plogotlp.ExportRequest) logsReply {
	t.Helper()
	response, err := plogotlp.NewGRPCClient(b.dialGRPC(t)).Export(t.Context(), request)
	if err != nil {
		return logsReply{err: err, message: status.Convert(err).Message()}
	}
	return logsReply{status: 200, rejected: response.PartialSuccess().RejectedLogRecords(), message: response.PartialSuccess().ErrorMessage()}
}

func (b *bench) postLogs(t testing.TB, contentType string, body []byte, header ...string) logsReply {
	t.Helper()
	resp, content := do(t, b.logsURL(), contentType, bytes.NewReader(body), header...)
	reply := logsReply{status: resp.StatusCode, retryAfter: resp.Header.Get("Retry-After")}
	inProtobuf := contentType == typeProtobuf
	require.Equal(t, inProtobuf, resp.Header.Get("Content-Type") == typeProtobuf)
	require.Equal(t, !inProtobuf, resp.Header.Get("Content-Type") == typeJSON)
	response := plogotlp.NewExportResponse()
	switch ok := resp.StatusCode == http.StatusOK; {
	case !ok && inProtobuf:
		var failed rpcstatus.Status
		require.NoError(t, proto.Unmarshal(content, &failed))
		reply.message = failed.GetMessage()
		return reply
	case !ok:
		var failed struct{ Message string }
		require.NoError(t, json.Unmarshal(content, &failed))
		reply.message = failed.Message
		return reply
	case inProtobuf:
		require.NoError(t, response.UnmarshalProto(content))
	default:
		require.NoError(t, response.UnmarshalJSON(content))
	}
	reply.rejected, reply.message = response.PartialSuccess().RejectedLogRecords(), response.PartialSuccess().ErrorMessage()
	return reply
}

// wholeLogs is the events of wholeLines as log events.
func wholeLogs() []record {
	other := inSpan("")
	return []record{
		event("tokenpulse.stream.start", 0, attrs{
			"span_id": spanHex, "parent_span_id": parentHex, "vantage": "client",
			"attributes": map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "llama-3-70b", "tier": "gold"},
		}),
		event("tokenpulse.stream.start", time.Second, attrs{"stream_id": "s2"}, other),
		event("tokenpulse.stream.scheduled", 50*time.Millisecond, nil),
		event("tokenpulse.stream.chunk", 200*time.Millisecond, attrs{"channel": "reasoning"}),
		event("tokenpulse.stream.chunk", 220*time.Millisecond, attrs{"channel": "reasoning", "text": "never kept"}),
		event("tokenpulse.stream.chunk", 300*time.Millisecond, attrs{"tokens": 3}),
		event("tokenpulse.stream.chunk", 325*time.Millisecond, attrs{"tokens": 0}),
		event("tokenpulse.stream.chunk", 355*time.Millisecond, attrs{"tokens": 1, "channel": "content"}),
		event("tokenpulse.stream.end", time.Second, attrs{"stream_id": "s2", "error": "upstream said no"}, other),
		event("tokenpulse.stream.end", 400*time.Millisecond, attrs{
			"usage":         map[string]any{"input_tokens": 17, "output_tokens": 6, "reasoning_tokens": 2, "cached_input_tokens": 0, "cache_write_input_tokens": 5},
			"finish_reason": "stop", "attributes": map[string]any{"tier": "silver"},
		}),
	}
}

// wholeLogsWithoutContext is wholeLogs with the IDs in attributes.
func wholeLogsWithoutContext() (records []record) {
	for _, inContext := range wholeLogs() {
		records = append(records, func(r plog.LogRecord) {
			inContext(r)
			if r.TraceID().IsEmpty() {
				return
			}
			r.Attributes().PutStr("stream_id", "s1")
			if r.EventName() == "tokenpulse.stream.start" {
				r.Attributes().PutStr("trace_id", traceHex)
			}
			inSpan("")(r)
		})
	}
	return records
}

func ordinary(r plog.LogRecord) {
	event("", 0, attrs{"http.method": "GET"})(r)
	r.Body().SetStr("GET /")
}

const notForLogs = "this endpoint accepts only token events (EventName gen_ai.token.generated, " +
	"gen_ai.content.completion.chunk, llm.content.completion.chunk, gen_ai.content.chunk, gen_ai.stream.chunk or " +
	"tokenpulse.stream.{start,scheduled,chunk,end}); send other log records to an otlp receiver"

func transports(t *testing.T, test func(t *testing.T, how string)) {
	t.Helper()
	for _, how := range []string{typeProtobuf, typeJSON, "grpc"} {
		t.Run(how, func(t *testing.T) { test(t, how) })
	}
}

func TestLogs_RejectsOrdinaryRecords(t *testing.T) {
	t.Run("all of a request", func(t *testing.T) {
		transports(t, func(t *testing.T, how string) {
			b := start(t)
			got := b.logs(t, how, ordinary, ordinary, ordinary)
			require.Equal(t, logsReply{status: 200, rejected: 3, message: notForLogs + " (3 records)"}, got)
			requireMetric(t, b, "events_rejected", map[string]string{"reason": "not_token_event"}, 3)
			require.Zero(t, b.ingester.store.Streams())
		})
	})
	t.Run("beside token events", func(t *testing.T) {
		transports(t, func(t *testing.T, how string) {
			b := start(t)
			mixed := []record{ordinary}
			for _, each := range wholeLogs() {
				mixed = append(mixed, each, ordinary)
			}
			b.logs(t, how, mixed...).partly(t, 11, notForLogs)
			require.Len(t, b.sink.all(), 2)
			require.Len(t, b.sink.all()[0].Chunks, 4)
			requireMetric(t, b, "events_accepted", nil, 10)
			requireMetric(t, b, "events_rejected", map[string]string{"reason": "not_token_event"}, 11)
		})
	})
	t.Run("other event names", func(t *testing.T) {
		b := start(t)
		got := b.logs(t, typeProtobuf,
			event("gen_ai.user.message", 0, nil),
			event("tokenpulse.stream.chunks", 0, nil),
			event("gen_ai.user.message", 0, attrs{"event.name": "gen_ai.token.generated"}),
			event("", 0, attrs{"event.name": 7}))
		got.partly(t, 4, notForLogs)
	})
	t.Run("an empty request is accepted", func(t *testing.T) {
		b := start(t)
		transports(t, func(t *testing.T, how string) { b.logs(t, how).whole(t) })
		b.postLogs(t, typeProtobuf, nil).whole(t)
		b.postLogs(t, typeJSON, []byte(" {}\n")).whole(t)
	})
}

// Many ordinary records must not hide the errors of token events.
func TestLogs_ListsErrorsOfTokenEvents(t *testing.T) {
	transports(t, func(t *testing.T, how string) {
		b := start(t)
		records := slices.Repeat([]record{ordinary}, 20)
		records = append(records, event("tokenpulse.stream.chunk", 0, attrs{"channel": "thoughts"}), event("gen_ai.token.generated", 0, nil))
		got := b.logs(t, how, records...)
		require.Equal(t, logsReply{status: 200, rejected: 21, message: notForLogs + " (20 records) | `channel` is unknown; send content, reasoning or tool_call"}, got)
	})
	t.Run("one error for a mistake with different values", func(t *testing.T) {
		b := start(t)
		var records []record
		for i := range 20 {
			records = append(records, event("tokenpulse.stream.chunk", 0, attrs{"seq": -1 - i}, inSpan(fmt.Sprintf("%016x", i+1))))
		}
		records = append(records, event("tokenpulse.stream.chunk", 0, attrs{"channel": "thoughts"}))
		require.Equal(t, logsReply{status: 200, rejected: 21, message: "`seq` is -1; send an integer from 0 (20 records) | `channel` is unknown; send content, reasoning or tool_call"},
			b.logs(t, typeProtobuf, records...))
	})
	t.Run("each error once, at most ten", func(t *testing.T) {
		b := start(t)
		channel, seq := event("tokenpulse.stream.chunk", 0, attrs{"channel": "thoughts"}), event("tokenpulse.stream.chunk", 0, attrs{"seq": -1})
		records := append(slices.Repeat([]record{channel, ordinary}, 1000), seq)
		want := []string{"`channel` is unknown; send content, reasoning or tool_call (1000 records)", notForLogs + " (1000 records)", "`seq` is -1; send an integer from 0"}
		for i := range 20 {
			id := fmt.Sprintf("%016x", i+1)
			end := event("tokenpulse.stream.end", 0, nil, inSpan(id))
			records = append(records, end, end, end)
			want = append(want, `stream "`+traceHex+"/"+id+`" is not open: it has not started, or it has ended; send its start event first, or in the same request (3 records)`)
		}
		require.Equal(t, logsReply{status: 200, rejected: 2061, message: strings.Join(want[:10], " | ")}, b.logs(t, typeProtobuf, records...))
	})
}

func TestLogs_RejectsUnreadableRequests(t *testing.T) {
	whole, err := plogotlp.NewExportRequestFromLogs(toLogs(wholeLogs()...)).MarshalProto()
	require.NoError(t, err)
	nested := nestedValue(300)
	deepJSON := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` +
		strings.Repeat(`{"arrayValue":{"values":[`, 100) + strings.Repeat(`]}}`, 100) + `}]}]}]}`
	tests := map[string]struct {
		contentType, body string
		status            int
		message           string
	}{
		"truncated protobuf":       {typeProtobuf, string(whole[:len(whole)-1]), 400, "not an OTLP ExportLogsServiceRequest"},
		"a wrong type in protobuf": {typeProtobuf, "\x0a\x02\x08\x01", 400, "not an OTLP ExportLogsServiceRequest"},
		// Some decoders accept such a field and continue after it.
		"nested after a field out of range": {typeProtobuf, string(append(protowire.AppendVarint(nil, (1<<40|100)<<3), 0)) + string(nested), 400, "not an OTLP ExportLogsServiceRequest"},
		"a trace id of three bytes":         {typeProtobuf, string(inRecord("\x4a\x03abc")), 400, "not an OTLP ExportLogsServiceRequest"},
		"deeply nested":                     {typeProtobuf, string(nested), 400, "nested too deep"},
		"nested in an attribute":            {typeProtobuf, string(nestedIn(300, 2, 6, 2, 2, 1)), 400, "nested too deep"},
		"nested in a scope":                 {typeProtobuf, string(nestedIn(300, 2, 3, 1, 2, 1)), 400, "nested too deep"},
		"nested in a resource":              {typeProtobuf, string(nestedIn(300, 2, 1, 1, 1)), 400, "nested too deep"},
		"nested in old scope logs":          {typeProtobuf, string(nestedIn(300, 5, 2, 1000, 1)), 400, "nested too deep"},
		"nested beyond the size of a stack": {typeProtobuf, string(nestedValue(1_900_000)), 400, "nested too deep"},
		"more records than bytes":           {typeProtobuf, string(manyRecords(2_000_000)), 413, "more than 1048576 records, attributes and values"},
		"not JSON":                          {typeJSON, "my-secret-prompt", 400, "the body is not valid JSON at byte 1; check the encoder"},
		"empty JSON":                        {typeJSON, "", 400, "not an OTLP ExportLogsServiceRequest"},
		"a list":                            {typeJSON, "[]", 400, "not an OTLP ExportLogsServiceRequest"},
		"two JSON objects":                  {typeJSON, "{}\n{}", 400, "more than one JSON value"},
		"half a JSON object":                {typeJSON, `{"resourceLogs":[{"my-secret-prompt`, 400, "not valid JSON"},
		"text for a time":                   {typeJSON, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"my-secret-prompt"}]}]}]}`, 400, "not an OTLP ExportLogsServiceRequest"},
		"nested JSON":                       {typeJSON, deepJSON, 400, "nested too deep"},
		"many JSON objects":                 {typeJSON, `{"resourceLogs":[{}` + strings.Repeat(",{}", 1<<20) + `]}`, 413, "more than 1048576 records"},
		"many nulls in JSON":                {typeJSON, `{"resourceLogs":[null` + strings.Repeat(",null", 1<<20) + `]}`, 413, "more than 1048576 records"},
		"another content type":              {"text/plain", "x", 415, "`Content-Type` is \"text/plain\"; send application/x-protobuf or application/json"},
		"NDJSON":                            {typeNDJSON, "{}", 415, "send application/x-protobuf or application/json"},
	}
	b := start(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got logsReply
			used := allocated(func() { got = b.postLogs(t, tt.contentType, []byte(tt.body)) })
			require.Equal(t, tt.status, got.status)
			require.Contains(t, got.message, tt.message)
			require.NotContains(t, got.message, "secret")
			require.Empty(t, got.retryAfter)
			require.Less(t, used, int64(200<<20))
		})
	}
	require.Empty(t, b.sink.all())
	requireMetric(t, b, "events_rejected", map[string]string{"reason": "malformed"}, int64(len(tests))-2)

	err = b.logsRaw(t, whole[:len(whole)-1])
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	err = b.logsRaw(t, nested)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	err = b.logsRaw(t, manyRecords(1_100_000))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Empty(t, status.Convert(err).Details(), "no retry")
	b.logs(t, "grpc", wholeLogs()...).whole(t)
}

// nestedValue is a request with nested lists in the body of a record.
func nestedValue(depth int) []byte { return nestedIn(depth, 5, 2, 2, 1) }

// nestedIn is nested lists inside of fields of these numbers, the innermost first.
func nestedIn(depth int, fields ...protowire.Number) []byte {
	var heads [][]byte // inside out
	size := 0
	for _, num := range append(slices.Repeat([]protowire.Number{1, 5}, depth), fields...) {
		head := protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.BytesType), uint64(size))
		heads = append(heads, head)
		size += len(head)
	}
	slices.Reverse(heads)
	return bytes.Join(heads, nil)
}

func inRecord(fields string) []byte { return inScope("\x12" + string(rune(len(fields))) + fields) }

func manyRecords(n int) []byte { return inScope(strings.Repeat("\x12\x00", n)) }

func inScope(records string) []byte {
	scope := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), records)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), scope)
}

// bytesCodec sends bytes as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

func (b *bench) logsRaw(t *testing.T, message []byte) error {
	t.Helper()
	var response []byte
	return b.dialGRPC(t).Invoke(t.Context(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export", message, &response, grpc.ForceCodec(bytesCodec{}))
}

func TestLogs_CommonLimits(t *testing.T) {
	t.Run("size of a body", func(t *testing.T) {
		b := start(t, func(c *Config) { c.Protocols.HTTP.Get().MaxRequestBodySize = 1000 })
		big := make([]byte, 2000)
		got := b.postLogs(t, typeProtobuf, big)
		require.Equal(t, 413, got.status)
		require.Equal(t, "the body is larger than 1000 bytes (max_request_body_size); send smaller requests", got.message)
		require.Equal(t, 413, b.postLogs(t, typeJSON, compress(t, "gzip", big), "Content-Encoding", "gzip").status)
		require.Equal(t, 400, b.postLogs(t, typeJSON, big, "Content-Encoding", "rot13").status)
	})
	t.Run("method", func(t *testing.T) {
		b := start(t)
		resp, err := http.Get(b.logsURL())
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, 405, resp.StatusCode)
		require.Equal(t, "POST", resp.Header.Get("Allow"))
	})
	t.Run("streams, memory and the pipeline", func(t *testing.T) {
		b := start(t, func(c *Config) { c.MaxStreams = 1 })
		chunks := []record{event("gen_ai.token.generated", 0, nil), event("gen_ai.token.generated", 0, nil, inSpan(spanHex))}
		full := b.logs(t, typeProtobuf, chunks...)
		require.Equal(t, logsReply{status: 429, retryAfter: "1", message: "max_streams is reached; send the request again later, or raise max_streams"}, full)
		require.Equal(t, full, b.logs(t, typeJSON, chunks...))
		requireRetryInfo(t, b.logs(t, "grpc", chunks...).err, codes.ResourceExhausted)
		require.Zero(t, b.ingester.store.Streams(), "nothing was applied")

		b.sink.failWith(errFull)
		refused := b.logs(t, typeProtobuf, append(wholeLogs(), ordinary)...)
		require.Equal(t, logsReply{status: 503, retryAfter: "1", message: "the pipeline temporarily refuses data: queue is full; send the request again later"}, refused)
		requireRetryInfo(t, b.logs(t, "grpc", wholeLogs()...).err, codes.Unavailable)
		requireMetric(t, b, "events_rejected", map[string]string{"reason": "not_token_event"}, 0)

		b.sink.failWith(consumererror.NewPermanent(errors.New("bad data")))
		require.Equal(t, 400, b.logs(t, typeProtobuf, wholeLogs()...).status)
		require.Equal(t, codes.InvalidArgument, status.Code(b.logs(t, "grpc", wholeLogs()...).err))

		b.sink.failWith(nil)
		b.logs(t, typeProtobuf, append(wholeLogs(), ordinary)...).partly(t, 1, notForLogs)
		require.Len(t, b.sink.all(), 2)
	})
	t.Run("chunks of a stream", func(t *testing.T) {
		transports(t, func(t *testing.T, how string) {
			b := start(t, func(c *Config) { c.MaxChunksPerStream = 1 })
			b.logs(t, how, slices.Repeat([]record{event("gen_ai.token.generated", 0, nil)}, 3)...).partly(t, 2, "has more than 1 chunks: 2 were dropped")
			requireMetric(t, b, "events_accepted", nil, 1)
		})
	})
}

// Each record that the decoder of the Collector finds is accepted or rejected, open
// streams keep to their limit, and a request leaves no memory reserved.
func FuzzLogs(f *testing.F) {
	export := plogotlp.NewExportRequestFromLogs(toLogs(append(wholeLogs(), ordinary, event("gen_ai.token.generated", 0, nil))...))
	encoded, err := export.MarshalProto()
	require.NoError(f, err)
	text, err := export.MarshalJSON()
	require.NoError(f, err)
	f.Add(encoded)
	f.Add(text)
	f.Add(nestedValue(300))
	f.Add(encoded[:len(encoded)/2])
	f.Add([]byte(`{"resourceLogs":[null,{"scopeLogs":[{"logRecords":[{"eventName":"gen_ai.token.generated","attributes":[{"key":"tokens","value":{"doubleValue":"NaN"}}]}]}]}]}`))
	cfg := createDefaultConfig().(*Config)
	cfg.MaxStreams, cfg.MaxChunksPerStream = 4, 8
	// Not started: other goroutines would count as coverage.
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		for i, read := range []func(*request, []byte) error{(*request).readLogsProtobuf, (*request).readLogsJSON} {
			req := r.take(r.reportHTTP, true, new(answer))
			if read(req, body) == nil {
				export := plogotlp.NewExportRequest()
				if i == 0 && export.UnmarshalProto(body) == nil || i == 1 && export.UnmarshalJSON(body) == nil {
					require.Equal(t, export.Logs().LogRecordCount(), req.batch.Events()+req.pending.Rejected)
				}
				_ = req.commit(context.Background())
			}
			r.put(req)
			require.Zero(t, req.memory.held)
		}
		require.LessOrEqual(t, r.ingester.store.Streams(), int64(4))
	})
}
