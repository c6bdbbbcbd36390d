// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

var otherEvents = []string{
	"gen_ai.token.generated", "gen_ai.content.completion.chunk", "llm.content.completion.chunk", "gen_ai.content.chunk", "gen_ai.stream.chunk",
}

// generated returns an event gen_ai.token.generated.
func generated(offset time.Duration, attributes attrs, change ...record) record {
	return event("gen_ai.token.generated", offset, attributes, change...)
}

const streamOfSpan = traceHex + "/" + parentHex

// Chunks of other instrumentation open their stream. Only idle_timeout or an event
// tokenpulse.stream.end closes it.
func TestLogEvents_OtherInstrumentation(t *testing.T) {
	for _, name := range otherEvents {
		for _, how := range []string{"EventName", "attribute event.name"} {
			t.Run(name+" as "+how, func(t *testing.T) {
				b := start(t)
				named := func(r plog.LogRecord) {
					if how != "EventName" {
						r.SetEventName("")
						r.Attributes().PutStr("event.name", name)
					}
				}
				b.logs(t, typeProtobuf, event(name, 3*time.Millisecond, nil, named), event(name, 5*time.Millisecond, attrs{"tokens": 4}, named)).whole(t)
				require.NoError(t, b.Shutdown(context.Background()))
				got := b.sink.one(t)
				require.NotEqual(t, parentHex, got.ID)
				require.Len(t, got.ID, 16)
				got.ID = ""
				attributes := map[string]any{
					"tokenpulse.vantage": "server", "tokenpulse.outcome": "incomplete", "tokenpulse.start.unseen": true, "tokenpulse.cut": "collector",
				}
				if name != "gen_ai.token.generated" {
					attributes["tokenpulse.chunk.frames"] = true
				}
				require.Equal(t, span{
					Name: "token_stream", Kind: "Server", Trace: traceHex, Parent: parentHex,
					Start: at(3 * time.Millisecond), End: at(5 * time.Millisecond), Status: "Unset",
					Attributes: attributes,
					Resource:   map[string]any{"service.name": "chat"},
					Chunks:     []chunk{{0, 1, timeline.Content}, {2 * time.Millisecond, 4, timeline.Content}},
				}, got)
			})
		}
	}
}

// One frame with tokens marks the stream, in any position.
func TestLogEvents_FramesAmongTokens(t *testing.T) {
	frame := event("gen_ai.content.chunk", 2*time.Millisecond, nil)
	first := event("tokenpulse.stream.start", 0, nil)
	token := event("tokenpulse.stream.chunk", time.Millisecond, nil)
	last := event("tokenpulse.stream.end", time.Second, nil)
	for name, tt := range map[string]struct {
		requests [][]record
		frames   any
	}{
		"before the start":          {[][]record{{frame}, {first}, {token}, {last}}, true},
		"with the end":              {[][]record{{first, token}, {frame, last}}, true},
		"a frame of zero tokens":    {[][]record{{first, token, event("gen_ai.content.chunk", 0, attrs{"tokens": 0}), last}}, nil},
		"a frame of another stream": {[][]record{{frame, last}, {first, token, last}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			for _, records := range tt.requests {
				b.logs(t, typeProtobuf, records...).whole(t)
			}
			require.Equal(t, tt.frames, b.sink.all()[0].Attributes["tokenpulse.chunk.frames"])
		})
	}
}

func TestLogEvents_Numbers(t *testing.T) {
	for name, tokens := range map[string]any{"an integer": 3, "a whole double": 3.0, "decimal digits": "3"} {
		for _, event := range []string{"gen_ai.token.generated", "tokenpulse.stream.chunk"} {
			t.Run(event+", "+name, func(t *testing.T) {
				transports(t, func(t *testing.T, how string) {
					b := start(t)
					b.logs(t, how, anEvent(event, attrs{"tokens": tokens})...).whole(t)
					require.Equal(t, []chunk{{0, 3, 0}}, b.sink.one(t).Chunks)
				})
			})
		}
	}
	t.Run("other instrumentation, not a number: one token", func(t *testing.T) {
		for _, tokens := range []any{"hello", 1.5, []any{"a", "b"}, true, nil} {
			b := start(t)
			b.logs(t, typeProtobuf, anEvent("gen_ai.token.generated", attrs{"tokens": tokens, "channel": "thoughts", "seq": "x", "vantage": "moon"})...).whole(t)
			require.Equal(t, []chunk{{0, 1, timeline.Content}}, b.sink.one(t).Chunks)
		}
	})
	t.Run("seq orders and drops duplicates", func(t *testing.T) {
		b := start(t)
		seq := func(n any, offset time.Duration) record {
			return event("tokenpulse.stream.chunk", offset, attrs{"seq": n})
		}
		const ms = time.Millisecond
		b.logs(t, typeProtobuf, seq(1, 10*ms), seq("0", 20*ms), seq(0.0, 20*ms), event("tokenpulse.stream.end", time.Second, nil)).whole(t)
		require.Equal(t, []chunk{{10 * ms, 1, 0}, {0, 1, 0}}, b.sink.one(t).Chunks, "since the earliest")
		requireMetric(t, b, "duplicates_dropped", nil, 1)
	})
	t.Run("usage in separate attributes", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, generated(0, nil), event("tokenpulse.stream.end", time.Second, attrs{
			"usage.input_tokens": 17, "usage.output_tokens": "6", "usage.reasoning_tokens": 2.0, "usage.cached_input_tokens": 0, "usage.cache_write_input_tokens": 5,
		})).whole(t)
		got := b.sink.one(t).Attributes
		require.EqualValues(t, 17, got["gen_ai.usage.input_tokens"])
		require.EqualValues(t, 6, got["gen_ai.usage.output_tokens"])
		require.EqualValues(t, 2, got["gen_ai.usage.reasoning.output_tokens"])
		require.EqualValues(t, 0, got["gen_ai.usage.cache_read.input_tokens"])
		require.EqualValues(t, 5, got["gen_ai.usage.cache_write.input_tokens"])
	})
}

// anEvent is a stream with one chunk.
func anEvent(name string, attributes attrs) []record {
	return []record{event(name, 0, attributes), event("tokenpulse.stream.end", time.Second, nil)}
}

func TestLogEvents_Channels(t *testing.T) {
	b := start(t)
	channel := func(name any) record {
		return event("tokenpulse.stream.chunk", 0, attrs{"channel": name})
	}
	b.logs(t, typeProtobuf, channel("reasoning"), channel("tool_call"), channel("content"), channel(nil), event("tokenpulse.stream.end", 0, nil)).whole(t)
	require.Equal(t, []chunk{{0, 1, timeline.Reasoning}, {0, 1, timeline.ToolCall}, {0, 1, timeline.Content}, {0, 1, timeline.Content}}, b.sink.one(t).Chunks)
}

func TestLogEvents_Vantages(t *testing.T) {
	for vantage, kind := range map[string]string{"client": "Client", "gateway": "Client", "server": "Server", "engine": "Server"} {
		b := start(t)
		b.logs(t, typeProtobuf, event("tokenpulse.stream.start", 0, attrs{"vantage": vantage}), event("tokenpulse.stream.end", 0, nil)).whole(t)
		require.Equal(t, vantage, b.sink.one(t).Attributes["tokenpulse.vantage"])
		require.Equal(t, kind, b.sink.one(t).Kind)
	}
}

func TestLogEvents_Outcomes(t *testing.T) {
	for name, tt := range map[string]struct {
		end     attrs
		outcome string
	}{
		"success":          {attrs{"finish_reason": "stop"}, "success"},
		"error":            {attrs{"error": "upstream said no"}, "error"},
		"cancelled":        {attrs{"cancelled": true}, "cancelled"},
		"neither":          {attrs{"cancelled": false, "error": ""}, "success"},
		"as text":          {attrs{"cancelled": "true"}, "cancelled"},
		"neither, as text": {attrs{"cancelled": "false"}, "success"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.logs(t, typeProtobuf, generated(0, nil), event("tokenpulse.stream.end", time.Second, tt.end)).whole(t)
			require.Equal(t, tt.outcome, b.sink.one(t).Attributes["tokenpulse.outcome"])
			require.Equal(t, at(time.Second), b.sink.one(t).End)
		})
	}
}

func TestLogEvents_FinishReasons(t *testing.T) {
	for name, tt := range map[string]struct{ reason, finishReasons any }{
		"text":                    {"stop", []any{"stop"}},
		"a list":                  {[]any{"stop", "length"}, []any{"stop"}},
		"an empty list":           {[]any{}, nil},
		"a list as JSON":          {`["stop", "length"]`, []any{"stop"}},
		"an empty list as JSON":   {"[]", nil},
		"text that is not JSON":   {"[stop]", []any{"_OTHER"}},
		"a list of numbers":       {"[1]", []any{"_OTHER"}},
		"text that is other JSON": {`"stop"`, []any{"_OTHER"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.logs(t, typeProtobuf, generated(0, nil), event("tokenpulse.stream.end", time.Second, attrs{"finish_reason": tt.reason})).whole(t)
			require.Equal(t, tt.finishReasons, b.sink.one(t).Attributes["gen_ai.response.finish_reasons"])
		})
	}
}

func TestLogEvents_Time(t *testing.T) {
	times := func(unixNano, observed uint64) record {
		return func(r plog.LogRecord) {
			r.SetTimestamp(pcommon.Timestamp(unixNano))
			r.SetObservedTimestamp(pcommon.Timestamp(observed))
		}
	}
	for name, tt := range map[string]struct {
		times   record
		message string
	}{
		"time wins":            {times(t0, t0+500), ""},
		"observed as fallback": {times(0, t0), ""},
		"both zero":            {times(0, 0), "`time_unix_nano` and `observed_time_unix_nano` are missing"},
		"out of range":         {times(1<<63, 0), "`time_unix_nano` is 9223372036854775808; send nanoseconds since 1970"},
		"observed is too big":  {times(0, 1<<63+1), "`observed_time_unix_nano` is 9223372036854775809; send nanoseconds since 1970"},
		"seconds":              {times(1_795_233_292, 0), "send time_unix_nano in nanoseconds since 1970, not seconds or milliseconds"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			got := b.logs(t, typeProtobuf, generated(0, nil, tt.times))
			if tt.message != "" {
				got.partly(t, 1, tt.message)
				require.Zero(t, b.ingester.store.Streams())
				return
			}
			got.whole(t)
			require.NoError(t, b.Shutdown(context.Background()))
			require.EqualValues(t, int64(t0), b.sink.one(t).Start)
		})
	}
}

func TestLogEvents_RejectsOnlyBadEvent(t *testing.T) {
	const own = "tokenpulse.stream."
	nowhere := inSpan("")
	half := func(r plog.LogRecord) { r.SetSpanID([8]byte{}) }
	var deep any = "x"
	for range 65 {
		deep = []any{deep}
	}
	var wide []any
	for range 1025 {
		wide = append(wide, 1)
	}
	for name, tt := range map[string]struct {
		bad     record
		message string
		reason  string
	}{
		"other, without span":         {generated(0, attrs{"stream_id": "s"}, nowhere), "record gen_ai.token.generated has no trace_id and span_id to identify its stream; log it in the span of its request", "invalid"},
		"other, without span ID":      {generated(0, nil, half), "has no trace_id and span_id", "invalid"},
		"own, without span":           {event(own+"chunk", 0, nil, nowhere), "log it in the span of its request, or set the attribute `stream_id`", "invalid"},
		"own, without span ID":        {event(own+"start", 0, nil, half), "or set the attribute `stream_id`", "invalid"},
		"a stream id of a number":     {event(own+"chunk", 0, attrs{"stream_id": 7}, nowhere), "`stream_id` is 7; send a UTF-8 string", "invalid"},
		"a very long stream id":       {event(own+"chunk", 0, attrs{"stream_id": strings.Repeat("x", 257)}, nowhere), "`stream_id` has 257 bytes; send at most 256", "invalid"},
		"scheduled, unknown stream":   {event(own+"scheduled", 0, nil), `stream "` + streamOfSpan + `" is not open`, "unknown_stream"},
		"end, unknown stream":         {event(own+"end", 0, nil), "is not open", "unknown_stream"},
		"zero tokens, unknown stream": {generated(0, attrs{"tokens": 0}), "is not open", "unknown_stream"},
		"tokens is -1":                {generated(0, attrs{"tokens": -1}), "`tokens` is -1; send an integer from 0 to 1048576", "invalid"},
		"tokens is 1e12":              {generated(0, attrs{"tokens": 1e12}), "`tokens` is 1e+12; send an integer from 0 to 1048576", "invalid"},
		"own, tokens is 1.5":          {event(own+"chunk", 0, attrs{"tokens": 1.5}), "`tokens` is 1.5; send an integer from 0 to 1048576", "invalid"},
		"own, tokens is text":         {event(own+"chunk", 0, attrs{"tokens": "my-secret"}), "`tokens` is a 9-byte string; send an integer from 0 to 1048576", "invalid"},
		"unknown channel":             {event(own+"chunk", 0, attrs{"channel": "my-secret"}), "`channel` is unknown; send content, reasoning or tool_call", "invalid"},
		"channel is a number":         {event(own+"chunk", 0, attrs{"channel": 1}), "`channel` is 1; send a UTF-8 string", "invalid"},
		"seq is negative":             {event(own+"chunk", 0, attrs{"seq": -1}), "`seq` is -1; send an integer from 0", "invalid"},
		"unknown vantage":             {event(own+"start", 0, attrs{"vantage": "my-secret"}), "`vantage` is unknown; send client, gateway, server or engine", "invalid"},
		"vantage is a number":         {event(own+"start", 0, attrs{"vantage": 1}), "`vantage` is 1; send a UTF-8 string", "invalid"},
		"unknown vantage of a chunk":  {event(own+"chunk", 0, attrs{"vantage": "my-secret"}), "`vantage` is unknown; send client, gateway, server or engine", "invalid"},
		"span id of 15 digits":        {event(own+"start", 0, attrs{"span_id": spanHex[1:]}), "`span_id` has 15 characters; send 16 hexadecimal digits", "invalid"},
		"parent id is not hex":        {event(own+"start", 0, attrs{"parent_span_id": "my-secret-text!!"}), "`parent_span_id` has characters that are not hexadecimal digits; send 16", "invalid"},
		"trace id is zero":            {event(own+"start", 0, attrs{"stream_id": "s", "trace_id": strings.Repeat("0", 32)}, nowhere), "`trace_id` is all zeros; omit the field", "invalid"},
		"attributes is a list":        {event(own+"start", 0, attrs{"attributes": []any{1}}), "`attributes` is an array; send a map", "invalid"},
		"attributes is text":          {event(own+"end", 0, attrs{"attributes": "my-secret"}), "`attributes` is a 9-byte string; send a map", "invalid"},
		"nested 66 deep":              {event(own+"start", 0, attrs{"attributes": map[string]any{"a": deep}}), "nested more than 64 deep", "invalid"},
		"1025 in a list":              {event(own+"start", 0, attrs{"attributes": map[string]any{"a": wide}}), "more than 1024 attributes in one list", "invalid"},
		"a value that is not UTF-8":   {event(own+"start", 0, attrs{"attributes": map[string]any{"a": "\xff"}}), "value is not valid UTF-8; encode it as UTF-8", "malformed"},
		"a key that is not UTF-8":     {event(own+"start", 0, attrs{"attributes": map[string]any{"\xff": 1}}), "key is not valid UTF-8; encode it as UTF-8", "malformed"},
		"a reason that is not UTF-8":  {event(own+"end", 0, attrs{"finish_reason": "\xff"}), "`finish_reason` is a 1-byte string; send a UTF-8 string", "invalid"},
		"a list without text":         {event(own+"end", 0, attrs{"finish_reason": []any{7}}), "`finish_reason` is 7; send a UTF-8 string", "invalid"},
		"a reason that is a map":      {event(own+"end", 0, attrs{"finish_reason": map[string]any{"a": "stop"}}), "`finish_reason` is a map; send a UTF-8 string", "invalid"},
		"attributes too large":        {event(own+"start", 0, attrs{"attributes": map[string]any{"a": strings.Repeat("x", 70_000)}}), "take more than 65536 bytes; send fewer or shorter values, or raise max_event_bytes", "limit"},
		"a chunk's are too large":     {generated(0, attrs{"gen_ai.request.model": strings.Repeat("x", 70_000)}), "take more than 65536 bytes; send fewer or shorter values, or raise max_event_bytes", "limit"},
		"usage is a list":             {event(own+"end", 0, attrs{"usage": []any{1}}), "`usage` is an array; send a map of token counts", "invalid"},
		"negative usage":              {event(own+"end", 0, attrs{"usage": map[string]any{"output_tokens": -3}}), "`usage.output_tokens` is -3; send an integer from 0 to 1000000000", "invalid"},
		"usage is text":               {event(own+"end", 0, attrs{"usage.input_tokens": "my-secret"}), "`usage.input_tokens` is a 9-byte string; send an integer from 0 to 1000000000", "invalid"},
		"cancelled is a number":       {event(own+"end", 0, attrs{"cancelled": 1}), "`cancelled` is 1; send true or false", "invalid"},
		"cancelled is text":           {event(own+"end", 0, attrs{"cancelled": "yes"}), "`cancelled` is a 3-byte string; send true or false", "invalid"},
		"error is a number":           {event(own+"end", 0, attrs{"error": 7}), "`error` is 7; send a UTF-8 string", "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			healthy := inSpan(spanHex)
			got := b.logs(t, typeProtobuf,
				event(own+"start", 0, nil, healthy), generated(time.Millisecond, nil, healthy),
				tt.bad,
				generated(2*time.Millisecond, nil, healthy), event(own+"end", time.Second, nil, healthy))
			got.partly(t, 1, tt.message)
			require.NotContains(t, got.message, "my-secret")
			requireHealthy(t, b)
			require.Len(t, b.sink.all(), 1)
			require.Zero(t, b.ingester.store.Streams())
			requireMetric(t, b, "events_accepted", nil, 4)
			requireMetric(t, b, "events_rejected", map[string]string{"reason": tt.reason}, 1)
		})
	}
}

func TestLogEvents_SpanIDs(t *testing.T) {
	const other = "1111111111111111"
	for name, tt := range map[string]struct {
		start             record
		trace, id, parent string // id is empty if it is derived
	}{
		"child of the record's span": {event("tokenpulse.stream.start", 0, nil), traceHex, "", parentHex},
		"the record's span itself":   {event("tokenpulse.stream.start", 0, attrs{"span_id": parentHex}), traceHex, parentHex, ""},
		"a span of its own":          {event("tokenpulse.stream.start", 0, attrs{"span_id": spanHex}), traceHex, spanHex, parentHex},
		"with an explicit parent":    {event("tokenpulse.stream.start", 0, attrs{"span_id": parentHex, "parent_span_id": other}), traceHex, parentHex, other},
		"child of another span":      {event("tokenpulse.stream.start", 0, attrs{"parent_span_id": other}), traceHex, "", other},
		"the record's trace wins":    {event("tokenpulse.stream.start", 0, attrs{"trace_id": strings.Repeat("7", 32)}), traceHex, "", parentHex},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.logs(t, typeProtobuf, tt.start, event("tokenpulse.stream.end", time.Second, nil)).whole(t)
			got := b.sink.one(t)
			if tt.id == "" {
				require.NotEqual(t, parentHex, got.ID)
				got.ID = ""
			}
			require.Equal(t, []string{tt.trace, tt.id, tt.parent}, []string{got.Trace, got.ID, got.Parent})
		})
	}
	t.Run("the span identifies the stream, or else stream_id", func(t *testing.T) {
		b := start(t)
		named := attrs{"stream_id": "s"}
		b.logs(t, typeProtobuf, event("tokenpulse.stream.start", 0, named), generated(0, nil), event("tokenpulse.stream.end", time.Second, named)).whole(t)
		require.Len(t, b.sink.one(t).Chunks, 1)
		// A stream may mix NDJSON and log events.
		require.Equal(t, 200, b.lines(t, startLine("s")).status)
		b.logs(t, typeProtobuf, event("tokenpulse.stream.chunk", 0, named, inSpan(""))).whole(t)
		require.Equal(t, 200, b.lines(t, endLine("s")).status)
		require.Len(t, b.sink.all(), 2)
		require.Len(t, b.sink.all()[1].Chunks, 1)
	})
}

// The span of a record identifies the stream, so two streams in one span are mixed.
func TestLogEvents_TwoStreamsInOneSpan(t *testing.T) {
	both := func(change ...record) []record {
		of := func(name string, offset time.Duration, id string) record {
			return event("tokenpulse.stream."+name, offset, attrs{"stream_id": id, "trace_id": traceHex, "parent_span_id": parentHex}, change...)
		}
		return []record{
			of("start", 0, "a"), of("start", time.Second, "b"), of("chunk", time.Second, "a"), of("chunk", 2*time.Second, "b"),
			of("end", 2*time.Second, "a"), of("end", 3*time.Second, "b"),
		}
	}
	t.Run("in its context", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, both()...).partly(t, 1, "is already open with another start time")
		got := b.sink.one(t)
		require.Len(t, got.Chunks, 2)
		require.Equal(t, at(2*time.Second), got.End)
	})
	t.Run("without a context", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, both(inSpan(""))...).whole(t)
		require.Len(t, b.sink.all(), 2)
		for _, got := range b.sink.all() {
			require.Len(t, got.Chunks, 1)
			require.Equal(t, []string{traceHex, parentHex}, []string{got.Trace, got.Parent})
		}
	})
}

func TestLogEvents_ImpliedStart(t *testing.T) {
	t.Run("at the earliest chunk of the request", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, generated(9*time.Millisecond, nil), generated(5*time.Millisecond, nil), generated(7*time.Millisecond, nil)).whole(t)
		b.logs(t, typeProtobuf, generated(11*time.Millisecond, nil), event("tokenpulse.stream.end", 12*time.Millisecond, nil)).whole(t)
		got := b.sink.one(t)
		require.Equal(t, at(5*time.Millisecond), got.Start)
		require.Equal(t, at(12*time.Millisecond), got.End)
		require.Len(t, got.Chunks, 4)
		require.Equal(t, true, got.Attributes["tokenpulse.start.unseen"])
		require.Equal(t, "success", got.Attributes["tokenpulse.outcome"])
	})
	t.Run("without queue duration", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, event("tokenpulse.stream.scheduled", 0, nil), generated(time.Second, nil), event("tokenpulse.stream.end", 2*time.Second, nil)).whole(t)
		require.NotContains(t, b.sink.one(t).Attributes, "tokenpulse.queue.duration")
		require.Equal(t, at(time.Second), b.sink.one(t).Start)
	})
	t.Run("with the fields of an own chunk", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, event("tokenpulse.stream.chunk", 0, attrs{"vantage": "engine", "attributes": map[string]any{"tier": "gold"}}),
			event("tokenpulse.stream.end", 2*time.Second, nil)).whole(t)
		require.Equal(t, "engine", b.sink.one(t).Attributes["tokenpulse.vantage"])
		require.Equal(t, "gold", b.sink.one(t).Attributes["tier"])
	})
	t.Run("attributes of the first record", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, generated(0, attrs{"gen_ai.request.model": "first"}), generated(1, attrs{"gen_ai.request.model": "second"})).whole(t)
		b.logs(t, typeProtobuf, generated(2, attrs{"gen_ai.request.model": "third"}), event("tokenpulse.stream.end", 3, nil)).whole(t)
		require.Equal(t, "first", b.sink.one(t).Attributes["gen_ai.request.model"])
	})
}

// Chunks after the end of a stream open another stream.
func TestLogEvents_ChunksAfterTheEnd(t *testing.T) {
	b := start(t, func(c *Config) { c.IdleTimeout = 30 * time.Millisecond })
	for i := range 3 {
		b.logs(t, typeProtobuf, generated(time.Duration(i)*time.Second, nil)).whole(t)
		eventually(t, func() bool { return len(b.sink.all()) == i+1 }, "the stream expires")
	}
	b.logs(t, typeProtobuf, generated(3*time.Second, nil), event("tokenpulse.stream.end", 4*time.Second, nil)).whole(t)
	ids := map[string]bool{}
	for _, s := range b.sink.all() {
		ids[s.ID] = true
		require.Equal(t, parentHex, s.Parent)
	}
	require.Len(t, ids, 4)
}

// Attributes of records are copied to the span only if they cannot be text of a prompt.
func TestLogEvents_CopiedAttributes(t *testing.T) {
	copied := attrs{
		"gen_ai.request.model": "m", "gen_ai.request.max_tokens": 100, "gen_ai.request.encoding_formats": []any{"base64"},
		"gen_ai.provider.name": "vllm", "gen_ai.system": "vllm", "gen_ai.operation.name": "chat",
	}
	ignored := attrs{
		"gen_ai.request.stop_sequences": []any{"x"}, "gen_ai.request.question": "x", "gen_ai.request.tools": "x", "gen_ai.request.user": "x",
		"gen_ai.prompt": "x", "gen_ai.input.messages": "x", "gen_ai.request.messages": "x", "gen_ai.request.prompt.0": "x",
		"gen_ai.request.model.extra": map[string]any{"prompt": "x"}, "gen_ai.request.parts": []any{map[string]any{"text": "x"}},
		"gen_ai.system_instructions": "x", "gen_ai.request": "x", "http.method": "POST", "text": "x", "stream_id": "x", "resource": "x",
	}
	for _, name := range []string{"gen_ai.token.generated", "tokenpulse.stream.start"} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			all := attrs{}
			for _, some := range []attrs{copied, ignored} {
				maps.Copy(all, some)
			}
			b.logs(t, typeProtobuf, event(name, 0, all), generated(1, ignored), event("tokenpulse.stream.end", 2, ignored)).whole(t)
			got := b.sink.one(t).Attributes
			for key, value := range copied {
				require.EqualValues(t, value, got[key], key)
			}
			for key := range ignored {
				require.NotContains(t, got, key)
			}
		})
	}
	t.Run("the field attributes wins", func(t *testing.T) {
		b := start(t)
		b.logs(t, typeProtobuf, event("tokenpulse.stream.start", 0, attrs{
			"gen_ai.request.model": "record", "attributes": map[string]any{"gen_ai.request.model": "field", "any.thing": 1.5},
		}), event("tokenpulse.stream.end", 2, nil)).whole(t)
		require.Equal(t, "field", b.sink.one(t).Attributes["gen_ai.request.model"])
		require.Equal(t, 1.5, b.sink.one(t).Attributes["any.thing"])
	})
}

// Text is not on the span, in logs or in the answer.
func TestLogEvents_TextIsNotKept(t *testing.T) {
	const secret = "my-secret-prompt"
	logged, logs := observer.New(zap.DebugLevel)
	transports(t, func(t *testing.T, how string) {
		b := start(t)
		b.settings.Logger = zap.New(logged)
		text := attrs{}
		for _, key := range []string{
			"text", "content", "delta", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt", "gen_ai.completion",
			"gen_ai.request.prompt", "gen_ai.request.messages", "llm.prompts.0.content", "message", "body",
		} {
			text[key] = secret
		}
		body := func(r plog.LogRecord) {
			r.Body().SetStr(secret)
			r.SetSeverityText(secret)
		}
		records := []record{ordinary}
		for _, name := range append(otherEvents, "tokenpulse.stream.start", "tokenpulse.stream.scheduled", "tokenpulse.stream.chunk", "tokenpulse.stream.end", secret) {
			records = append(records, event(name, 0, text, body))
		}
		records = append(records, event("tokenpulse.stream.chunk", 0, attrs{"channel": secret}, body), event("gen_ai.token.generated", 0, text, inSpan(""), body))
		got := b.logs(t, how, records...)
		require.EqualValues(t, 4, got.rejected)
		require.NotContains(t, got.message, secret)
		require.Len(t, b.sink.one(t).Chunks, 6)
		require.NotContains(t, fmt.Sprint(b.sink.all()), secret)
		require.NoError(t, b.Shutdown(context.Background()))
		require.NotContains(t, fmt.Sprint(logs.All()), secret)
	})
}
