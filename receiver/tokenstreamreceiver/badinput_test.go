// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

func startLine(id string) string { return startWith(id, at(0)) }

// startWith returns a start at a time, with more fields.
func startWith(id string, unixNano uint64, more ...string) string {
	return fmt.Sprintf(`{"event":"start","stream_id":%q,"time_unix_nano":"%d"%s}`, id, unixNano, strings.Join(append([]string{""}, more...), ","))
}

func chunkLine(id string, offset time.Duration, more ...string) string {
	return fmt.Sprintf(`{"event":"chunk","stream_id":%q,"time_unix_nano":"%d"%s}`, id, at(offset), strings.Join(append([]string{""}, more...), ","))
}

func endLine(id string) string {
	return fmt.Sprintf(`{"event":"end","stream_id":%q,"time_unix_nano":"%d"}`, id, at(time.Second))
}

// healthyLines is a stream that bad input must not affect.
func healthyLines() []string {
	return []string{startLine("healthy"), chunkLine("healthy", time.Millisecond), chunkLine("healthy", 2*time.Millisecond), endLine("healthy")}
}

func requireHealthy(t *testing.T, b *bench) {
	t.Helper()
	for _, s := range b.sink.all() {
		if s.Attributes["tokenpulse.outcome"] == "success" && s.End == at(time.Second) {
			require.Equal(t, []chunk{{time.Millisecond, 1, 0}, {2 * time.Millisecond, 1, 0}}, s.Chunks)
			return
		}
	}
	require.Fail(t, "the healthy stream is lost")
}

func TestNDJSON_RejectsOnlyBadLine(t *testing.T) {
	tests := map[string]struct {
		line    string
		message string // substring
		reason  string
	}{
		"malformed JSON":              {`{"event":"chunk",`, "the line is not a valid JSON object at byte 18; send one object a line", "malformed"},
		"not an object":               {`[1,2]`, "not a valid JSON object", "malformed"},
		"two objects":                 {startLine("x") + startLine("y"), "not a valid JSON object", "malformed"},
		"NaN":                         {`{"event":"chunk","stream_id":"bad","time_unix_nano":NaN}`, "not a valid JSON object at byte 53", "malformed"},
		"tokens is NaN":               {chunkLine("bad", 0, `"tokens":NaN`), "not a valid JSON object", "malformed"},
		"invalid UTF-8":               {"{\"event\":\"chunk\",\"stream_id\":\"b\xffd\"}", "not a valid JSON object", "malformed"},
		"the same key twice":          {`{"event":"chunk","event":"start"}`, "`event` is set twice; send it once", "malformed"},
		"the same attribute twice":    {`{"event":"start","stream_id":"bad","time_unix_nano":1,"attributes":{"a":1,"a":2}}`, "not a valid JSON object", "malformed"},
		"unknown event":               {`{"event":"chunck","stream_id":"bad","time_unix_nano":1}`, "`event` is unknown; send start, scheduled, chunk or end", "invalid"},
		"unknown event, no stream id": {`{"event":"strt"}`, "`event` is unknown; send start", "invalid"},
		"no event":                    {`{"stream_id":"bad","time_unix_nano":1}`, "`event` is missing; send start, scheduled, chunk or end", "invalid"},
		"no stream id":                {`{"event":"chunk","time_unix_nano":1}`, "`stream_id` is missing; send one", "invalid"},
		"stream id is a number":       {`{"event":"chunk","stream_id":7,"time_unix_nano":1}`, "`stream_id` is 7; send a string", "invalid"},
		"a very long stream id":       {startLine(strings.Repeat("x", 257)), "`stream_id` has 257 bytes; send at most 256", "invalid"},
		"unknown stream":              {chunkLine("who", 0), `stream "who" is not open`, "unknown_stream"},
		"end of an unknown stream":    {endLine("who"), `stream "who" is not open`, "unknown_stream"},
		"no time":                     {`{"event":"chunk","stream_id":"bad"}`, "`time_unix_nano` is missing; send it, or `time` as RFC 3339 text", "invalid"},
		"negative time":               {`{"event":"chunk","stream_id":"bad","time_unix_nano":-5}`, "`time_unix_nano` is -5; send a positive integer", "invalid"},
		"zero time":                   {`{"event":"chunk","stream_id":"bad","time_unix_nano":0}`, "the time is 0; send time_unix_nano in nanoseconds since 1970", "invalid"},
		"170 years late":              {chunkLine("healthy", 170*365*24*time.Hour), "the time is 170 years after the start of stream \"healthy\"", "invalid"},
		"two days early":              {chunkLine("healthy", -48*time.Hour), "the time is 48 hours before the start of stream \"healthy\"", "invalid"},
		"seconds for nanoseconds":     {`{"event":"chunk","stream_id":"healthy","time_unix_nano":1795233292}`, "before the start of stream", "invalid"},
		"time overflows":              {`{"event":"chunk","stream_id":"bad","time_unix_nano":"99999999999999999999"}`, "`time_unix_nano` is a 20-byte string; send", "invalid"},
		"time is not RFC 3339":        {`{"event":"chunk","stream_id":"bad","time":"yesterday"}`, "`time` is not RFC 3339; send it as in 2026-11-21T05:48:12.181556Z", "invalid"},
		"time in the year 9999":       {`{"event":"chunk","stream_id":"bad","time":"9999-01-01T00:00:00Z"}`, "`time` is in the year 9999; send one from 1970 to 2261", "invalid"},
		"start in seconds":            {startWith("bad", 1_795_233_292), "the time is 1970-01-01T00:00:01Z, outside the years 2000 to 2199; send time_unix_nano in nanoseconds since 1970, not seconds or milliseconds", "invalid"},
		"start in milliseconds":       {startWith("bad", 1_795_233_292_181), "the time is 1970-01-01T00:29:55Z, outside the years 2000 to 2199; send time_unix_nano in nanoseconds since 1970, not seconds or milliseconds", "invalid"},
		"start before 2000":           {startWith("bad", 946_684_799_999_999_999), "the time is 1999-12-31T23:59:59Z", "invalid"},
		"start close to overflow":     {startWith("bad", math.MaxInt64-5), "the time is 2262-04-11T23:47:16Z", "invalid"},
		"both times":                  {`{"event":"chunk","stream_id":"bad","time":"2026-01-01T00:00:00Z","time_unix_nano":1}`, "both set", "invalid"},
		"tokens is -1":                {chunkLine("healthy", 0, `"tokens":-1`), "`tokens` is -1; send an integer from 0 to 1048576", "invalid"},
		"tokens is 1e12":              {chunkLine("healthy", 0, `"tokens":1e12`), "`tokens` is 1e12; send an integer from 0 to 1048576", "invalid"},
		"tokens is 1000000000000":     {chunkLine("healthy", 0, `"tokens":1000000000000`), "`tokens` is 1000000000000; send an integer from 0 to 1048576", "invalid"},
		"tokens is 1.5":               {chunkLine("healthy", 0, `"tokens":1.5`), "`tokens` is 1.5; send an integer from 0 to 1048576", "invalid"},
		"unknown channel":             {chunkLine("healthy", 0, `"channel":"thoughts"`), "`channel` is unknown; send content, reasoning, tool_call or audio", "invalid"},
		"seq is negative":             {chunkLine("healthy", 0, `"seq":-1`), "`seq` is -1; send an integer from 0", "invalid"},
		"seq is enormous":             {chunkLine("healthy", 0, `"seq":"9999999999999999999"`), "`seq` is 9999999999999999999; send an integer from 0 to ", "invalid"},
		"trace id of 31 digits":       {`{"event":"start","stream_id":"bad","time_unix_nano":1,"trace_id":"` + traceHex[1:] + `"}`, "`trace_id` has 31 characters; send 32 hexadecimal digits", "invalid"},
		"trace id is not hexadecimal": {`{"event":"start","stream_id":"bad","time_unix_nano":1,"trace_id":"` + strings.Repeat("z", 32) + `"}`, "`trace_id` has characters that are not hexadecimal digits; send 32", "invalid"},
		"trace id is zero":            {`{"event":"start","stream_id":"bad","time_unix_nano":1,"trace_id":"` + strings.Repeat("0", 32) + `"}`, "`trace_id` is all zeros", "invalid"},
		"span id of 18 digits":        {`{"event":"start","stream_id":"bad","time_unix_nano":1,"span_id":"` + spanHex + `00"}`, "`span_id` has 18 characters; send 16 hexadecimal digits", "invalid"},
		"parent id is a number":       {`{"event":"start","stream_id":"bad","time_unix_nano":1,"parent_span_id":12}`, "`parent_span_id` is 12; send a string of 16 hexadecimal digits", "invalid"},
		"unknown vantage":             {`{"event":"start","stream_id":"bad","time_unix_nano":1795233292181556000,"vantage":"moon"}`, "`vantage` is unknown; send client, gateway, server or engine", "invalid"},
		"attributes is a list":        {`{"event":"start","stream_id":"bad","time_unix_nano":1,"attributes":[1]}`, "`attributes` is an array; send an object", "invalid"},
		"negative usage":              {`{"event":"end","stream_id":"healthy","usage":{"output_tokens":-3}}`, "`usage.output_tokens` is -3; send an integer from 0 to 1000000000", "invalid"},
		"absurd usage":                {`{"event":"end","stream_id":"healthy","usage":{"input_tokens":1000000000001}}`, "`usage.input_tokens` is 1000000000001; send an integer from 0 to 1000000000", "invalid"},
		"cancelled is a string":       {`{"event":"end","stream_id":"healthy","cancelled":"yes"}`, "`cancelled` is a 3-byte string; send true or false", "invalid"},
		"an oversized line":           {`{"event":"chunk","stream_id":"bad","text":"` + strings.Repeat("t", 100_000) + `"}`, "the line is longer than 65536 bytes (max_event_bytes)", "limit"},
		"1025 attributes":             {`{"event":"start","stream_id":"bad","time_unix_nano":1,"attributes":{` + manyAttributes(1025) + `}}`, "more than 1024 attributes", "invalid"},
		"nested 65 deep":              {`{"event":"start","stream_id":"bad","time_unix_nano":1,"attributes":{"a":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}}`, "nested more than 64 deep", "invalid"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			got := b.lines(t, startLine("healthy"), chunkLine("healthy", time.Millisecond), tt.line, chunkLine("healthy", 2*time.Millisecond), endLine("healthy"))
			require.Equal(t, 200, got.status)
			require.Equal(t, 4, got.answer.Accepted)
			require.Equal(t, 1, got.answer.Rejected)
			require.Len(t, got.answer.Errors, 1)
			require.Equal(t, 3, got.answer.Errors[0].Line)
			require.Contains(t, got.answer.Errors[0].Message, tt.message)
			requireHealthy(t, b)
			requireMetric(t, b, "events_rejected", map[string]string{"reason": tt.reason}, 1)
			requireMetric(t, b, "events_accepted", nil, 4)
			require.Zero(t, b.ingester.Store.Streams(), "no memory of the bad stream remains")

			alone := b.lines(t, tt.line)
			if !strings.Contains(tt.line, `"healthy"`) {
				require.Equal(t, 400, alone.status, "nothing was accepted")
			}
		})
	}
}

func manyAttributes(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(`"k%d":1`, i))
	}
	return strings.Join(parts, ",")
}

// The order of lines inside one request does not matter.
func TestNDJSON_ChunkBeforeStart(t *testing.T) {
	b := start(t)
	got := b.lines(t, chunkLine("healthy", time.Millisecond), endLine("healthy"), startLine("healthy"), chunkLine("healthy", 2*time.Millisecond))
	require.Equal(t, answer{Accepted: 4}, got.answer)
	requireHealthy(t, b)

	got = b.lines(t, chunkLine("late", time.Millisecond))
	require.Equal(t, 400, got.status)
	require.Equal(t, answer{Rejected: 1, Errors: []answerError{{Line: 1, Message: `stream "late" is not open: it has not started, or it has ended; send its start event first, or in the same request`}}}, got.answer)
}

// Errors contain names of fields and numbers. Of strings, they contain IDs only.
func TestErrors_DoNotEchoValues(t *testing.T) {
	b := start(t)
	secret := "my-secret-prompt"
	for contentType, body := range map[string]string{
		typeNDJSON:   `{"event":"` + secret + `","stream_id":"a","text":"` + secret + `","tokens":"` + secret + `"}` + "\n" + secret,
		typeJSON:     `{"resourceTokenStreams":[{"tokenStreams":[{"streamId":"a","` + secret + `":1,"scheduledTimeUnixNano":"` + secret + `"}]}]}`,
		typeProtobuf: "\x0a\x7f" + secret,
	} {
		got := b.post(t, contentType, strings.NewReader(body))
		require.Equal(t, 400, got.status)
		require.NotEmpty(t, got.answer.Errors)
		for _, e := range got.answer.Errors {
			require.NotContains(t, e.Message, "secret")
		}
	}
	for field, event := range map[string]string{
		"time_unix_nano":     `"event":"chunk","time_unix_nano":"secret"`,
		"time":               `"event":"chunk","time":"secret"`,
		"tokens":             `"event":"chunk","time_unix_nano":1795233292181556000,"tokens":"secret"`,
		"channel":            `"event":"chunk","time_unix_nano":1795233292181556000,"channel":"secret"`,
		"seq":                `"event":"chunk","time_unix_nano":1795233292181556000,"seq":"secret"`,
		"trace_id":           `"event":"start","time_unix_nano":1795233292181556000,"trace_id":"secret"`,
		"vantage":            `"event":"start","time_unix_nano":1795233292181556000,"vantage":["secret"]`,
		"attributes":         `"event":"start","time_unix_nano":1795233292181556000,"attributes":"secret"`,
		"usage":              `"event":"end","usage":"secret"`,
		"usage.input_tokens": `"event":"end","usage":{"input_tokens":"secret"}`,
		"cancelled":          `"event":"end","cancelled":"secret"`,
		"finish_reason":      `"event":"end","finish_reason":{"secret":1}`,
		"error":              `"event":"end","error":["secret"]`,
	} {
		got := b.lines(t, `{"stream_id":"a",`+event+`}`)
		require.Equal(t, 400, got.status, field)
		require.Contains(t, got.answer.Errors[0].Message, "`"+field+"`")
		require.NotContains(t, got.answer.Errors[0].Message, "secret", field)
	}
}

func TestProtobuf_RejectsTruncatedMessage(t *testing.T) {
	encoded, err := proto.Marshal(wholeMessage())
	require.NoError(t, err)
	b := start(t)
	for cut := 1; cut < len(encoded); cut++ {
		got := b.post(t, typeProtobuf, bytes.NewReader(encoded[:cut]))
		require.Equal(t, 400, got.status, "the first %d bytes", cut)
		require.Contains(t, got.answer.Errors[0].Message, "truncated")
	}
	require.Empty(t, b.sink.all())
	require.Zero(t, b.ingester.Store.Streams(), "nothing was applied")
	requireMetric(t, b, "events_rejected", map[string]string{"reason": "malformed"}, int64(len(encoded)-1))
}

func TestProtobuf_RejectsOnlyBadTokenStream(t *testing.T) {
	healthy := &tokenpulsev1.TokenStream{
		StreamId:  "healthy",
		Start:     &tokenpulsev1.StreamStart{TimeUnixNano: t0},
		ChunkRuns: []*tokenpulsev1.ChunkRun{{TimeUnixNano: at(time.Millisecond), TimeDeltas: []int64{0, int64(time.Millisecond)}}},
		End:       &tokenpulsev1.StreamEnd{TimeUnixNano: at(time.Second)},
	}
	run := func(change func(*tokenpulsev1.ChunkRun)) *tokenpulsev1.TokenStream {
		r := &tokenpulsev1.ChunkRun{TimeUnixNano: at(time.Millisecond), TimeDeltas: []int64{0, 1, 2}}
		change(r)
		return &tokenpulsev1.TokenStream{StreamId: "bad", Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0}, ChunkRuns: []*tokenpulsev1.ChunkRun{r}}
	}
	tests := map[string]struct {
		stream  *tokenpulsev1.TokenStream
		message string
	}{
		"tokens beyond the maximum": {run(func(r *tokenpulsev1.ChunkRun) { r.Tokens = []uint32{1, 1 << 31, 1} }), "`tokens` is 2147483648; send an integer from 0 to 1048576"},
		"fewer tokens than times":   {run(func(r *tokenpulsev1.ChunkRun) { r.Tokens = []uint32{1} }), "`tokens` has 1 entries for 3 `time_deltas`"},
		"a channel of 9":            {run(func(r *tokenpulsev1.ChunkRun) { r.Channel = 9 }), "`channel` is unknown"},
		"no time":                   {run(func(r *tokenpulsev1.ChunkRun) { r.TimeUnixNano = 0 }), "the time is 0; send time_unix_nano in nanoseconds since 1970"},
		"time after 2262":           {run(func(r *tokenpulsev1.ChunkRun) { r.TimeUnixNano = 1 << 63 }), "`time_unix_nano` is 9223372036854775808; send nanoseconds since 1970"},
		"a delta of 170 years":      {run(func(r *tokenpulsev1.ChunkRun) { r.TimeDeltas[1] = 170 * 365 * 86400e9 }), "`time_deltas` has a delta of more than 73 years"},
		"a time before 1970":        {run(func(r *tokenpulsev1.ChunkRun) { r.TimeUnixNano, r.TimeDeltas[0] = 1, -5 }), "the time is -4; send time_unix_nano in nanoseconds since 1970"},
		"start after 2262":          {&tokenpulsev1.TokenStream{StreamId: "bad", Start: &tokenpulsev1.StreamStart{TimeUnixNano: 1 << 63}}, "the time is 2262-04-11T23:47:16Z, outside the years 2000 to 2199"},
		"a delta of two days":       {run(func(r *tokenpulsev1.ChunkRun) { r.TimeDeltas[1] = 2 * 86400e9 }), "after the start of stream \"bad\""},
		"a unit of two days":        {run(func(r *tokenpulsev1.ChunkRun) { r.DeltaUnitNanos = 2 * 86400e9 }), "`delta_unit_nanos` is 172800000000000, more than a day; send"},
		"sequence numbers overflow": {run(func(r *tokenpulsev1.ChunkRun) { r.FirstSequenceNumber = proto.Uint64(1<<63 - 1) }), "`first_sequence_number` is 9223372036854775807; send at most 9223372036854775804"},
		"no stream id":              {&tokenpulsev1.TokenStream{Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0}}, "`stream_id` is missing; send one"},
		"unknown stream":            {&tokenpulsev1.TokenStream{StreamId: "bad", End: &tokenpulsev1.StreamEnd{}}, "is not open"},
		"start without a time":      {&tokenpulsev1.TokenStream{StreamId: "bad", Start: &tokenpulsev1.StreamStart{}}, "the time is 0; send time_unix_nano in nanoseconds since 1970"},
		"trace id of 15 bytes":      {&tokenpulsev1.TokenStream{StreamId: "bad", Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0, TraceId: make([]byte, 15)}}, "`trace_id` has 15 bytes; send 16 (32 hexadecimal digits)"},
		"span id of zeros":          {&tokenpulsev1.TokenStream{StreamId: "bad", Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0, SpanId: make([]byte, 8)}}, "`span_id` is all zeros"},
		"a vantage of 261":          {&tokenpulsev1.TokenStream{StreamId: "bad", Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0, Vantage: 261}}, "`vantage` is unknown"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			message := &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
				TokenStreams: []*tokenpulsev1.TokenStream{tt.stream, healthy},
			}}}
			encoded, err := proto.Marshal(message)
			require.NoError(t, err)
			got := b.post(t, typeProtobuf, bytes.NewReader(encoded))
			require.Equal(t, 200, got.status)
			require.Equal(t, 1, got.answer.Accepted)
			require.Equal(t, 1, got.answer.Rejected)
			require.Equal(t, tt.stream.GetStreamId(), got.answer.Errors[0].StreamID)
			require.Contains(t, got.answer.Errors[0].Message, tt.message)
			requireHealthy(t, b)
			require.Zero(t, b.ingester.Store.Streams())

			response, err := b.grpc(t).Export(t.Context(), message)
			require.NoError(t, err)
			require.EqualValues(t, 1, response.GetPartialSuccess().GetRejectedTokenStreams())
			require.Contains(t, response.GetPartialSuccess().GetErrorMessage(), tt.message)

			message.ResourceTokenStreams[0].TokenStreams = message.ResourceTokenStreams[0].TokenStreams[:1]
			_, err = b.grpc(t).Export(t.Context(), message)
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			require.Len(t, b.sink.all(), 2)
		})
	}
}

func TestProtobuf_ListsTheSameErrorOnce(t *testing.T) {
	b := start(t)
	bad := func(id string) *tokenpulsev1.TokenStream {
		return &tokenpulsev1.TokenStream{StreamId: id, ChunkRuns: []*tokenpulsev1.ChunkRun{{TimeUnixNano: at(0), Channel: 9}}}
	}
	message, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
		TokenStreams: []*tokenpulsev1.TokenStream{bad("a"), bad("b"), bad("a")},
	}}})
	require.NoError(t, err)
	got := b.post(t, typeProtobuf, bytes.NewReader(message)).answer
	require.Equal(t, 3, got.Rejected)
	require.Len(t, got.Errors, 2)
	require.Equal(t, "a", got.Errors[0].StreamID)
	require.Equal(t, "b", got.Errors[1].StreamID)
}

func TestHTTP_RejectsWrongRequest(t *testing.T) {
	b := start(t, func(c *Config) { c.Protocols.HTTP.Get().MaxRequestBodySize = 1000 })
	big := strings.Repeat(" ", 2000)
	tests := map[string]struct {
		contentType, body string
		header            []string
		status            int
		message           string
	}{
		"wrong content type":           {"text/plain", "x", nil, 415, "application/x-ndjson, application/json or application/x-protobuf"},
		"no content type":              {"", "x", nil, 415, "application/x-ndjson"},
		"unknown content encoding":     {typeJSON, "x", []string{"Content-Encoding", "rot13"}, 400, "rot13"},
		"not in the declared encoding": {typeJSON, "x", []string{"Content-Encoding", "gzip"}, 400, ""},
		"oversized JSON":               {typeJSON, big, nil, 413, "larger than 1000 bytes (max_request_body_size)"},
		"oversized protobuf":           {typeProtobuf, big, nil, 413, "larger than 1000 bytes"},
		"oversized declared NDJSON":    {typeNDJSON, big, nil, 413, "larger than 1000 bytes"},
		"a gzip bomb":                  {typeJSON, string(servertest.Compress(t, "gzip", []byte(strings.Repeat(" ", 10_000_000))))[:900], []string{"Content-Encoding", "gzip"}, 413, "larger than 1000 bytes"},
		"a zstd bomb":                  {typeJSON, string(servertest.Compress(t, "zstd", []byte(strings.Repeat(" ", 10_000_000)))), []string{"Content-Encoding", "zstd"}, 413, "larger than 1000 bytes"},
		"empty JSON":                   {typeJSON, "", nil, 400, "not the JSON mapping"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := b.post(t, tt.contentType, strings.NewReader(tt.body), tt.header...)
			require.Equal(t, tt.status, got.status)
			require.Contains(t, got.answer.Errors[0].Message, tt.message)
		})
	}
	for _, contentType := range []string{typeNDJSON, typeProtobuf} {
		got := b.post(t, contentType, strings.NewReader(""))
		require.Equal(t, reply{200, got.header, answer{}}, got, "an empty body is accepted")
	}
	require.Equal(t, 200, b.lines(t, healthyLines()...).status)
	requireHealthy(t, b)
}

// For instance, an SDK sends its spans to this port.
func TestHTTP_UnknownPathNamesTheKnownOnes(t *testing.T) {
	b := start(t)
	for _, path := range []string{"/v1/traces", "/v1/metrics", "/v1/tokens/", "/"} {
		resp, err := http.Post("http://"+b.server.AddrHTTP.String()+path, typeProtobuf, strings.NewReader("x"))
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 404, resp.StatusCode, path)
		require.Contains(t, string(body), "unknown path; send token events to /v1/tokens; for spans, use the otlp receiver")
	}
}

// The complete lines of a live body count when the client disconnects.
func TestLiveBody_ClientDisconnects(t *testing.T) {
	before := runtime.NumGoroutine()
	b := start(t)
	conn, err := net.Dial("tcp", b.server.AddrHTTP.String())
	require.NoError(t, err)
	body := strings.Join([]string{startLine("cut"), chunkLine("cut", time.Millisecond), `{"event":"chunk","str`}, "\n")
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", tokensPath, typeNDJSON, len(body), body)
	require.NoError(t, err)
	eventually(t, func() bool { return b.ingester.Store.Streams() == 1 }, "complete lines are applied when they arrive")
	require.NoError(t, conn.Close())

	// Without its end, a body with a Content-Length is not applied.
	conn, err = net.Dial("tcp", b.server.AddrHTTP.String())
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 100000\r\n\r\n%s\n", tokensPath, typeNDJSON, startLine("declared"))
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	require.Equal(t, 200, b.lines(t, healthyLines()...).status)
	requireHealthy(t, b)
	require.Equal(t, 200, b.lines(t, chunkLine("cut", 3*time.Millisecond), endLine("cut")).status, "another connection goes on with it")
	require.EqualValues(t, 0, b.ingester.Store.Streams())
	require.NoError(t, b.Shutdown(context.Background()))
	require.Len(t, b.sink.all(), 2)
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+4 }, "the goroutines end")
}

func TestMemory_HundredThousandModelNames(t *testing.T) {
	const models, perRequest = 100_000, 10_000
	b := start(t, func(c *Config) { c.MaxSharePerClient = 1 })
	for first := 0; first < models; first += perRequest {
		var body strings.Builder
		for i := first; i < first+perRequest; i++ {
			fmt.Fprintf(&body, `{"event":"start","stream_id":"s%d","time_unix_nano":"%d","attributes":{"gen_ai.request.model":"model-%d"}}`+"\n", i, at(0), i)
		}
		got := b.post(t, typeNDJSON, strings.NewReader(body.String()))
		require.Equal(t, answer{Accepted: perRequest}, got.answer)
	}
	require.EqualValues(t, models, b.ingester.Store.Streams())
	require.LessOrEqual(t, b.ingester.Store.Memory()/models, int64(512), "bytes an open stream holds")

	got := b.lines(t, startLine("one-more"))
	require.Equal(t, 429, got.status)
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Contains(t, got.answer.Errors[0].Message, "max_streams")
	requireMetric(t, b, "streams_refused", map[string]string{"limit": "max_streams"}, 1)
	requireMetric(t, b, "streams_open", nil, models)

	require.NoError(t, b.Shutdown(context.Background()))
	require.Len(t, b.sink.all(), models)
	require.Zero(t, b.ingester.Store.Memory())
}
