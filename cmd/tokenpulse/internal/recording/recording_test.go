// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(t *testing.T, text string) []*stream.Stream {
	t.Helper()
	streams, err := Read(t.Context(), strings.NewReader(text))
	require.NoError(t, err)
	return streams
}

func TestRead_NDJSONEvents(t *testing.T) {
	streams := read(t, `
{"event":"start","stream_id":"s1","time_unix_nano":"1795233292181556000","trace_id":"0af7651916cd43dd8448eb211c80319c","parent_span_id":"b7ad6b7169203331","vantage":"server","resource":{"service.name":"chat"},"attributes":{"gen_ai.request.model":"llama-3-70b","n":3,"t":0.5}}
{"event":"scheduled","stream_id":"s1","time_unix_nano":1795233292181557000}
{"event":"start","stream_id":"s0","time":"2026-11-21T03:00:00.000000001Z","resource":{"service.name":"chat"}}
{"event":"chunk","stream_id":"s1","time_unix_nano":"1795233292281556000"}

{"event":"chunk","stream_id":"s1","time_unix_nano":"1795233292291556000","tokens":4,"channel":"tool_call","seq":7,"text":"never read","delta":{"content":"nor this"}}
{"event":"chunk","stream_id":"s1","time_unix_nano":"1795233292301556000","tokens":0,"channel":"reasoning"}
{"event":"chunk","stream_id":"s1","time_unix_nano":"1795233292311556000","tokens":9,"channel":"audio"}
{"event":"end","stream_id":"s1","time_unix_nano":"1795233292401556000","usage":{"input_tokens":17,"output_tokens":12,"reasoning_tokens":0},"finish_reason":"stop","attributes":{"late":true}}
{"event":"end","stream_id":"s0","cancelled":true,"interrupted":true}
`)
	chat := &stream.Resource{Attributes: stream.Attributes{"service.name": "chat"}}
	require.Equal(t, []*stream.Stream{
		{ID: "s0", Resource: chat, Start: time.Date(2026, 11, 21, 3, 0, 0, 1, time.UTC).UnixNano(), End: &stream.End{Cancelled: true, Interrupted: true}},
		{
			ID: "s1", Resource: chat, Vantage: timeline.VantageServer,
			TraceID:      []byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c},
			ParentSpanID: []byte{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31},
			Attributes:   stream.Attributes{"gen_ai.request.model": "llama-3-70b", "n": int64(3), "t": 0.5},
			Start:        1795233292181556000, Scheduled: 1795233292181557000,
			Chunks: []stream.Chunk{
				{Time: 1795233292281556000, Tokens: 1, Channel: timeline.Content},
				{Time: 1795233292291556000, Tokens: 4, Channel: timeline.ToolCall, Sequence: 7, Sequenced: true},
				{Time: 1795233292301556000, Tokens: 0, Channel: timeline.Reasoning},
				{Time: 1795233292311556000, Channel: timeline.Audio}, // which holds no tokens, so replays count none as sent
			},
			End: &stream.End{
				Time: 1795233292401556000, FinishReason: "stop", Attributes: stream.Attributes{"late": true},
				Usage: &stream.Usage{InputTokens: new(uint64(17)), OutputTokens: new(uint64(12)), ReasoningTokens: new(uint64(0))},
			},
		},
	}, streams)
	require.Same(t, streams[0].Resource, streams[1].Resource)
}

func TestRead_ErrorNamesLineAndRemedy(t *testing.T) {
	const start = `{"event":"start","stream_id":"s","time_unix_nano":"10"}` + "\n"
	const record = `{"metadata":{"x_request_id":"r","timestamp_ns":5},"metrics":{`
	tests := map[string]struct{ text, err string }{
		"empty file":         {"\n\n", "the recording is empty"},
		"not JSON":           {"hello", "unknown format; expected token events, AIPerf's profile_export.jsonl"},
		"not an object":      {"[1]", "unknown format"},
		"unknown object":     {`{"x":1}`, "unknown format"},
		"broken line":        {start + "{", "line 2: not an event"},
		"no stream_id":       {`{"event":"start","time_unix_nano":"1"}`, "line 1: the event has no stream_id"},
		"no time":            {`{"event":"start","stream_id":"s"}`, "line 1: the event has no time; give time_unix_nano or time"},
		"negative time":      {`{"event":"start","stream_id":"s","time_unix_nano":-1}`, "time_unix_nano -1 is not a Unix time"},
		"time too large":     {`{"event":"start","stream_id":"s","time_unix_nano":"99999999999999999999"}`, "is not a Unix time"},
		"fraction of a nano": {`{"event":"start","stream_id":"s","time_unix_nano":1.5}`, "is not a Unix time"},
		"time not RFC 3339":  {`{"event":"start","stream_id":"s","time":"noon"}`, `time "noon" is not RFC 3339`},
		"time out of range":  {`{"event":"start","stream_id":"s","time":"2400-01-01T00:00:00Z"}`, "is out of range"},
		"short id":           {`{"event":"start","stream_id":"s","time_unix_nano":"1","trace_id":"abcd"}`, `trace_id "abcd" is not 32 hex digits`},
		"id not hexadecimal": {`{"event":"start","stream_id":"s","time_unix_nano":"1","span_id":"zzzzzzzzzzzzzzzz"}`, "is not 16 hex digits"},
		"unknown vantage":    {`{"event":"start","stream_id":"s","time_unix_nano":"1","vantage":"moon"}`, `unknown vantage "moon"; valid vantages: client, gateway, server, engine`},
		"unknown event":      {start + `{"event":"pause","stream_id":"s","time_unix_nano":"1"}`, `line 2: unknown event "pause"`},
		"unknown stream":     {`{"event":"chunk","stream_id":"s","time_unix_nano":"1"}`, `stream "s" has not started`},
		"second start":       {start + start, `line 2: stream "s" starts a second time`},
		"chunk after end":    {start + `{"event":"end","stream_id":"s"}` + "\n" + `{"event":"chunk","stream_id":"s","time_unix_nano":"20"}`, `line 3: stream "s" has already ended`},
		"negative tokens":    {start + `{"event":"chunk","stream_id":"s","time_unix_nano":"20","tokens":-1}`, "tokens is -1"},
		"too many tokens":    {start + `{"event":"chunk","stream_id":"s","time_unix_nano":"20","tokens":1000000000000}`, "tokens is 1000000000000"},
		"unknown channel":    {start + `{"event":"chunk","stream_id":"s","time_unix_nano":"20","channel":"sung"}`, `unknown channel "sung"; valid channels: content, reasoning, tool_call`},
		"no request id":      {`{"metadata":{"timestamp_ns":5}}`, "has no metadata.x_request_id"},
		"no start":           {`{"metadata":{"x_request_id":"r"}}`, "has no metadata.request_start_ns"},
		"unsupported unit":   {record + `"ttft":{"value":1,"unit":"s"}}}`, `time to first token is in "s"; only exports in "ms" are supported`},
		"negative latency":   {record + `"ttft":{"value":-1,"unit":"ms"}}}`, "a latency is -1 ms; supported are 0 to 24 hours"},
		"latency too long":   {record + `"ttft":{"value":1,"unit":"ms"},"inter_chunk_latency":{"value":[1e300],"unit":"ms"}}}`, "supported are 0 to 24 hours"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(t.Context(), strings.NewReader(test.text))
			require.ErrorContains(t, err, test.err)
		})
	}
}

func TestRead_RejectsLongLine(t *testing.T) {
	long := append([]byte(`{"event":"start","stream_id":"s","time_unix_nano":"10"}`+"\n"), bytes.Repeat([]byte{' '}, maxLineBytes+1)...)
	_, err := Read(t.Context(), bytes.NewReader(long))
	require.ErrorContains(t, err, "line 2: longer than 32 MiB")
}

func TestDefaults_FillOnlyMissingAttributes(t *testing.T) {
	streams := read(t, `
{"event":"start","stream_id":"a","time_unix_nano":"1","resource":{"service.name":"own"},"attributes":{"gen_ai.request.model":"own"}}
{"event":"start","stream_id":"b","time_unix_nano":"2","resource":{"host.name":"h"}}
{"event":"start","stream_id":"c","time_unix_nano":"3"}
{"event":"start","stream_id":"d","time_unix_nano":"4"}
`)
	Defaults{Service: "svc", Model: "model"}.Apply(streams)
	require.Equal(t, stream.Attributes{"service.name": "own"}, streams[0].Resource.Attributes)
	require.Equal(t, stream.Attributes{"gen_ai.request.model": "own"}, streams[0].Attributes)
	require.Equal(t, stream.Attributes{"host.name": "h", "service.name": "svc"}, streams[1].Resource.Attributes)
	require.Equal(t, stream.Attributes{"gen_ai.request.model": "model"}, streams[1].Attributes)
	require.Equal(t, stream.Attributes{"service.name": "svc"}, streams[2].Resource.Attributes)
	require.Same(t, streams[2].Resource, streams[3].Resource)
}

func TestRead_AIPerfRecord(t *testing.T) {
	const head = `{"metadata":{"x_request_id":"r","timestamp_ns":1000000000000000000},`
	const at = int64(1_000_000_000_000_000_000)
	tests := map[string]struct {
		record string
		chunks []stream.Chunk
		end    stream.End
	}{
		"reasoning tokens come first": {
			`"metrics":{"ttft":{"value":1.5,"unit":"ms"},"inter_chunk_latency":{"value":[0.000001,2],"unit":"ms"},"reasoning_token_count":{"value":2,"unit":"tokens"},"output_token_count":{"value":1,"unit":"tokens"},"max_response_timestamp":{"value":1000000000003500003,"unit":"ns"}}}`,
			[]stream.Chunk{
				{Time: at + 1_500_000, Tokens: 1, Channel: timeline.Reasoning, Sequence: 0, Sequenced: true},
				{Time: at + 1_500_001, Tokens: 1, Channel: timeline.Reasoning, Sequence: 1, Sequenced: true},
				{Time: at + 3_500_001, Tokens: 1, Channel: timeline.Content, Sequence: 2, Sequenced: true},
			},
			stream.End{Time: at + 3_500_003, Usage: &stream.Usage{ReasoningTokens: new(uint64(2))}},
		},
		"only reasoning, with one chunk more than the count": {
			`"metrics":{"ttft":{"value":1,"unit":"ms"},"inter_chunk_latency":{"value":[1],"unit":"ms"},"reasoning_token_count":{"value":1,"unit":"tokens"},"request_latency":{"value":4,"unit":"ms"}}}`,
			[]stream.Chunk{
				{Time: at + 1_000_000, Tokens: 1, Channel: timeline.Reasoning, Sequence: 0, Sequenced: true},
				{Time: at + 2_000_000, Tokens: 1, Channel: timeline.Reasoning, Sequence: 1, Sequenced: true},
			},
			stream.End{Time: at + 4_000_000, Usage: &stream.Usage{ReasoningTokens: new(uint64(1))}},
		},
		"model without reasoning": {
			`"metrics":{"ttft":{"value":1,"unit":"ms"},"reasoning_token_count":{"value":0,"unit":"tokens"},"input_sequence_length":{"value":9,"unit":"tokens"},"output_sequence_length":{"value":1,"unit":"tokens"}}}`,
			[]stream.Chunk{{Time: at + 1_000_000, Tokens: 1, Channel: timeline.Content, Sequenced: true}},
			stream.End{Usage: &stream.Usage{InputTokens: new(uint64(9)), OutputTokens: new(uint64(1)), ReasoningTokens: new(uint64(0))}},
		},
		"cancelled after 1.25 seconds": {
			`"metrics":{},"error":{"code":499,"type":"RequestCancellationError","message":"Request was cancelled after 1.250 seconds"}}`,
			nil,
			stream.End{Time: at + 1_250_000_000, Cancelled: true},
		},
		"failed": {
			`"metrics":{},"error":{"code":500,"type":"ServerError","message":"dropped, because it may quote the prompt"}}`,
			nil,
			stream.End{Error: "ServerError", Attributes: stream.Attributes{"error.type": "ServerError", "http.response.status_code": int64(500)}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := read(t, head+test.record)[0]
			require.Equal(t, "r", s.ID)
			require.Equal(t, timeline.VantageClient, s.Vantage)
			require.Equal(t, at, s.Start)
			require.Equal(t, test.chunks, s.Chunks)
			require.Equal(t, &test.end, s.End)
		})
	}
}

// aiperfExport is a real export of AIPerf: 100 requests, see testdata/README.md at
// the project's root.
const aiperfExport = "testdata/aiperf_profile_export.jsonl.gz"

// The expected times come from the same JSON, read without the reader under test:
// decimals are exact fractions, and sums are not rounded in between.
func TestReadAIPerf_KeepsEveryTimeOfARealExport(t *testing.T) {
	export := testenv.Unzip(t, aiperfExport)
	streams, err := Read(t.Context(), bytes.NewReader(export))
	require.NoError(t, err)
	require.Len(t, streams, 100)
	byID := map[string]*stream.Stream{}
	for _, s := range streams {
		byID[s.ID] = s
	}

	var success, cancelled, gaps int
	for line := range bytes.Lines(export) {
		var raw struct {
			Metadata map[string]any
			Metrics  map[string]struct{ Value any }
			Error    map[string]any
		}
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&raw))
		s := byID[raw.Metadata["x_request_id"].(string)]
		require.Equal(t, number(t, raw.Metadata["timestamp_ns"]).Num().Int64(), s.Start)
		if raw.Error != nil {
			cancelled++
			require.Empty(t, s.Chunks)
			require.Equal(t, &stream.End{Time: s.Start, Cancelled: true}, s.End)
			continue
		}
		success++
		exact := number(t, raw.Metrics["ttft"].Value)
		requireNanos(t, exact, s.Chunks[0].Time-s.Start)
		recorded := raw.Metrics["inter_chunk_latency"].Value.([]any)
		require.Len(t, s.Chunks, len(recorded)+1)
		for i, gap := range recorded {
			gaps++
			requireNanos(t, number(t, gap), s.Chunks[i+1].Time-s.Chunks[i].Time)
			exact.Add(exact, number(t, gap))
		}
		requireNanos(t, exact, s.Chunks[len(recorded)].Time-s.Start)
		requireNanos(t, number(t, raw.Metrics["request_latency"].Value), s.End.Time-s.Start)
		require.Equal(t, number(t, raw.Metrics["output_sequence_length"].Value).Num().Uint64(), *s.End.Usage.OutputTokens)
		require.Equal(t, number(t, raw.Metrics["input_sequence_length"].Value).Num().Uint64(), *s.End.Usage.InputTokens)
		require.Equal(t, number(t, raw.Metrics["reasoning_token_count"].Value).Num().Uint64(), *s.End.Usage.ReasoningTokens)
	}
	require.Equal(t, 89, success)
	require.Equal(t, 11, cancelled)
	require.Equal(t, 21_537, gaps, "testdata/README.md states this number")
}

// The files that other tests read follow from the export: the token events, and the
// numbers that AIPerf computed of each request. With -update they are rewritten.
func TestReadAIPerf_WritesTheRecordingInTestdata(t *testing.T) {
	export := testenv.Unzip(t, aiperfExport)
	events := write(t, read(t, string(export)))
	computed := computedByAIPerf(t, export)
	eventsFile, computedFile := testenv.Data(t, testenv.RecordingFile), testenv.Data(t, testenv.RecordingRequestsFile)
	if testenv.Update() {
		var zipped bytes.Buffer
		w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(events)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(eventsFile, zipped.Bytes(), 0o644))
		require.NoError(t, os.WriteFile(computedFile, computed, 0o644))
	}
	require.True(t, bytes.Equal(events, testenv.Unzip(t, eventsFile)), "%s differs: run this test with -update", eventsFile)
	written, err := os.ReadFile(computedFile)
	require.NoError(t, err)
	require.Equal(t, string(computed), string(written), "%s differs: run this test with -update", computedFile)
}

// computedByAIPerf returns the contents of aiperf.requests.json, one request a line.
func computedByAIPerf(t *testing.T, export []byte) []byte {
	t.Helper()
	var requests [][]byte
	for line := range bytes.Lines(export) {
		type metric[T any] struct{ Value T }
		var record struct {
			Metadata struct {
				RequestID string `json:"x_request_id"`
			}
			Metrics struct {
				TTFT              metric[float64]
				InterTokenLatency metric[float64] `json:"inter_token_latency"`
				RequestLatency    metric[float64] `json:"request_latency"`
				OutputLength      metric[int64]   `json:"output_sequence_length"`
			}
			Error any
		}
		require.NoError(t, json.Unmarshal(line, &record))
		if record.Error != nil {
			continue
		}
		request, err := json.Marshal(testenv.RecordedLatency{
			StreamID:          record.Metadata.RequestID,
			TimeToFirstToken:  record.Metrics.TTFT.Value,
			InterTokenLatency: record.Metrics.InterTokenLatency.Value,
			RequestLatency:    record.Metrics.RequestLatency.Value,
			OutputTokens:      record.Metrics.OutputLength.Value,
		})
		require.NoError(t, err)
		requests = append(requests, request)
	}
	return fmt.Appendf(nil, "[\n%s\n]\n", bytes.Join(requests, []byte(",\n")))
}

func number(t *testing.T, v any) *big.Rat {
	t.Helper()
	n, ok := new(big.Rat).SetString(v.(json.Number).String())
	require.True(t, ok)
	return n
}

// requireNanos fails if nanos differs from the exact milliseconds by more than half a
// nanosecond.
func requireNanos(t *testing.T, ms *big.Rat, nanos int64) {
	t.Helper()
	off := new(big.Rat).Mul(ms, big.NewRat(1_000_000, 1))
	off.Sub(off, big.NewRat(nanos, 1))
	require.LessOrEqual(t, off.Abs(off).Cmp(big.NewRat(1, 2)), 0, "%s ms is not %d ns", ms.FloatString(9), nanos)
}

// A recording that can be read stays the same when written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"event":"start","stream_id":"s1","time_unix_nano":"10","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","vantage":"client","resource":{"a":[1,{"b":2.5}]},"attributes":{"x":null}}
{"event":"scheduled","stream_id":"s1","time_unix_nano":11}
{"event":"chunk","stream_id":"s1","time":"1970-01-01T00:00:01Z","tokens":3,"channel":"reasoning","seq":4}
{"event":"end","stream_id":"s1","usage":{"output_tokens":3},"error":"e","cancelled":true}`))
	f.Add([]byte(`{"metadata":{"x_request_id":"r","timestamp_ns":1000000000000000000},"metrics":{"ttft":{"value":1.5,"unit":"ms"},"inter_chunk_latency":{"value":[2.5],"unit":"ms"},"reasoning_token_count":{"value":1,"unit":"tokens"}}}`))
	f.Add([]byte(`{"metadata":{"x_request_id":"r","timestamp_ns":1},"metrics":{},"error":{"code":499,"message":"cancelled after 0.5 seconds"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		streams, err := Read(t.Context(), bytes.NewReader(data))
		if err != nil {
			return
		}
		first := write(t, streams)
		again, err := Read(t.Context(), bytes.NewReader(first))
		if err != nil { // AIPerf records may repeat an id
			require.ErrorContains(t, err, "a second time")
			return
		}
		require.Equal(t, string(first), string(write(t, again)))
	})
}

func write(t *testing.T, streams []*stream.Stream) []byte {
	t.Helper()
	var out []byte
	for _, s := range streams {
		var err error
		out, err = stream.Whole(s).AppendNDJSON(out)
		require.NoError(t, err)
	}
	return out
}
