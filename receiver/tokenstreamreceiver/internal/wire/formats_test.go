// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// event is a token event as NDJSON writes it: the names of its fields, and values that
// encoding/json writes.
type event map[string]any

// conversation is the same token events in the forms from which each format is encoded.
type conversation struct {
	streams []*tokenpulsev1.TokenStream
	events  []event // in the order in which they happened
}

// converse makes two interleaved streams. Each step of four bytes is an event.
func converse(id, reason, failure string, steps []byte) *conversation {
	c := &conversation{}
	at := uint64(t0)
	for i := range 2 {
		s := &tokenpulsev1.TokenStream{StreamId: id + strconv.Itoa(i), Start: &tokenpulsev1.StreamStart{
			TimeUnixNano: at, Vantage: tokenpulsev1.Vantage(len(steps) % 5),
			Attributes: []*commonv1.KeyValue{{Key: "gen_ai.request.model", Value: stringValue(id)}},
		}}
		start := event{
			"event": "start", "stream_id": s.StreamId, "time_unix_nano": at,
			"resource": event{"service.name": "chat"}, "attributes": event{"gen_ai.request.model": id},
		}
		if v := timeline.Vantage(s.Start.Vantage); v != timeline.VantageUnspecified {
			start["vantage"] = v.String()
		}
		if i == 1 {
			s.Start.TraceId, s.Start.SpanId = []byte("0123456789abcdef"), []byte("01234567")
			start["trace_id"], start["span_id"] = hex.EncodeToString(s.Start.TraceId), hex.EncodeToString(s.Start.SpanId)
		}
		c.streams, c.events = append(c.streams, s), append(c.events, start)
	}
	for ; len(steps) >= 4; steps = steps[4:] {
		s := c.streams[steps[0]&1]
		at += uint64(steps[1])<<(steps[2]%24) + 1 // up to four seconds
		e := event{"stream_id": s.StreamId, "time_unix_nano": at}
		c.events = append(c.events, e)
		if steps[0]&2 != 0 && s.ScheduledTimeUnixNano == 0 {
			s.ScheduledTimeUnixNano = at
			e["event"] = "scheduled"
			continue
		}
		channel, tokens := timeline.Channel(steps[0]>>2%3), uint32(steps[3])
		e["event"], e["channel"], e["tokens"] = "chunk", channel.String(), tokens
		run := &tokenpulsev1.ChunkRun{TimeUnixNano: at, TimeDeltas: []int64{0}, Channel: tokenpulsev1.Channel(channel), Tokens: []uint32{tokens}}
		if steps[0]&0x80 != 0 { // a few numbers, so that some repeat
			run.FirstSequenceNumber = proto.Uint64(uint64(steps[0] >> 4 & 7))
			e["seq"] = run.GetFirstSequenceNumber()
		}
		s.ChunkRuns = append(s.ChunkRuns, run)
	}
	for i, s := range c.streams {
		at++
		usage := &tokenpulsev1.Usage{OutputTokens: proto.Uint64(at % 1000), CachedInputTokens: proto.Uint64(0), CacheWriteInputTokens: proto.Uint64(5)}
		s.End = &tokenpulsev1.StreamEnd{TimeUnixNano: at, FinishReason: reason, Error: failure, Cancelled: i == 0, Usage: usage}
		c.events = append(c.events, event{
			"event": "end", "stream_id": s.StreamId, "time_unix_nano": at, "finish_reason": reason, "error": failure, "cancelled": i == 0,
			"usage": event{"output_tokens": usage.GetOutputTokens(), "cached_input_tokens": 0, "cache_write_input_tokens": 5},
		})
	}
	return c
}

func (c *conversation) message() *tokenpulsev1.ExportTokenStreamsRequest {
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
		Resource:     &resourcev1.Resource{Attributes: []*commonv1.KeyValue{{Key: "service.name", Value: stringValue("chat")}}},
		TokenStreams: c.streams,
	}}}
}

func (c *conversation) ndjson(t *testing.T) []byte {
	t.Helper()
	var lines bytes.Buffer
	for _, e := range c.events {
		require.NoError(t, json.NewEncoder(&lines).Encode(e))
	}
	return lines.Bytes()
}

// FuzzFormats sends the same events in every format. What protobuf accepts, all accept,
// and the streams are the same.
func FuzzFormats(f *testing.F) {
	f.Add("s", "stop", "", []byte{0, 1, 20, 1, 1, 1, 20, 3, 2, 1, 3, 0, 0, 9, 20, 0, 0x94, 7, 7, 7, 0x94, 7, 7, 7})
	f.Add("\u00e9\n\"", "a\\b", "timeout", []byte{0x88, 0, 0, 2, 0x98, 0, 0, 2, 0x88, 0, 0, 2, 0x81, 200, 23, 255})
	f.Add(strings.Repeat("x", 300), "length", "\u2028", []byte{})
	f.Fuzz(func(t *testing.T, id, reason, failure string, steps []byte) {
		c := converse(id, reason, failure, steps[:min(len(steps), 400)])
		encoded, err := proto.Marshal(c.message())
		if err != nil {
			return // not UTF-8
		}
		fromProtobuf := func(encoded []byte) (string, error) {
			var decoder TokenStreams
			return outcomeOf(t, func(b *assembly.Batch, r Reject) error { return decoder.Decode(encoded, b, r) })
		}
		want, err := fromProtobuf(encoded)
		require.NoError(t, err)
		if strings.Contains(want, "rejected") {
			return // a format of events rejects one event, others the stream
		}
		mapped, err := protojson.Marshal(c.message())
		require.NoError(t, err)
		converted, err := JSONToProtobuf(mapped)
		require.NoError(t, err)
		got, err := fromProtobuf(converted)
		require.NoError(t, err)
		require.Equal(t, want, got, "JSON")

		lines := c.ndjson(t)
		got, err = outcomeOf(t, func(b *assembly.Batch, r Reject) error {
			var decoder NDJSON
			for line := range bytes.Lines(lines) {
				if err := decoder.Decode(bytes.TrimSuffix(line, []byte("\n")), 1, b); err != nil {
					r(1, id, err)
				}
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, want, got, "NDJSON: %s", lines)
	})
}

func stringValue(s string) *commonv1.AnyValue {
	return &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: s}}
}
