// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// call is one request of an oracle case. Its times share one arbitrary origin.
type call struct {
	start, end time.Duration
	arrivals   []arrival
	reported   *int64
	failed     bool
	deadlines  *FluidityConfig
}

type arrival struct {
	at      time.Duration
	tokens  uint32
	channel timeline.Channel
}

// span returns the span that the token_stream receiver makes of the call.
func (c *call) span() ptrace.Traces {
	const epoch = 1_795_233_292_000_000_000
	start := epoch + int64(c.start)
	var line timeline.Timeline
	for _, a := range c.arrivals {
		line.Append(epoch+int64(a.at), a.tokens, a.channel)
	}
	traces := ptrace.NewTraces()
	span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetStartTimestamp(pcommon.Timestamp(start))
	span.SetEndTimestamp(pcommon.Timestamp(epoch + int64(c.end)))
	span.Attributes().PutEmptyBytes(names.Timeline).FromRaw(line.AppendBinary(nil, start))
	if c.reported != nil {
		span.Attributes().PutInt(names.GenAIOutputTokens, *c.reported)
	}
	if c.failed {
		span.Status().SetCode(ptrace.StatusCodeError)
	}
	return traces
}

// decoder reads one shape of a case's input. It is used for inputs with the field,
// unless an earlier decoder matches.
type decoder struct {
	field  string
	decode func(t *testing.T, input json.RawMessage, unit time.Duration) []call
}

var decoders []decoder

func init() { // not a literal: decodeRecords uses decoders
	decoders = []decoder{
		{"records", decodeRecords},
		{"file", decodeRecording},
		{"inter_token_times", decodeWaits},
		{"inter_chunk_latency", decodeGaps},
		{"events", decodeEvents},
		{"token_times", decodeTokenTimes},
		{"content_times", decodeTokenTimes},
		{"chunks_ms", decodeChunks},
		{"chunks", decodeChunks},
		{"tokens_per_chunk", decodeChunks},
		{"reasoning_tokens", decodeTokenCounts},
		{"full_decode_duration", decodeDecodeOnly},
		{"itl_ns", decodeDecodeOnly},
		{"ttft", decodeContradiction},
	}
}

// decodeCalls returns the calls of an input, or nil for an unknown shape.
func decodeCalls(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	fields := parse[map[string]json.RawMessage](t, input)
	for _, d := range decoders {
		if _, ok := fields[d.field]; ok {
			return d.decode(t, input, unit)
		}
	}
	return nil
}

func parse[T any](t *testing.T, input []byte) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(input, &v))
	return v
}

// scale converts a number of a case to a duration.
func scale(v float64, unit time.Duration) time.Duration {
	nanos := v * float64(unit)
	if nanos < 0 {
		return time.Duration(nanos - 0.5)
	}
	return time.Duration(nanos + 0.5)
}

// contentAt returns a chunk of one token.
func contentAt(at time.Duration) arrival { return arrival{at, 1, timeline.Content} }

// endAtLast ends a call with its last chunk, as tools do that measure at the client.
func (c *call) endAtLast() {
	c.end = c.start
	if n := len(c.arrivals); n > 0 {
		c.end = max(c.start, c.arrivals[n-1].at)
	}
}

func decodeRecords(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	var calls []call
	for _, record := range parse[struct{ Records []json.RawMessage }](t, input).Records {
		calls = append(calls, decodeCalls(t, record, unit)...)
	}
	return calls
}

// decodeChunks reads arrival times or a number of chunks, with optional tokens per
// chunk, cumulative tokens or reported output length.
func decodeChunks(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct {
		Start            *float64
		StartMillis      *float64 `json:"start_ms"`
		Chunks           json.RawMessage
		ChunksMillis     []float64       `json:"chunks_ms"`
		TokensPerChunk   json.RawMessage `json:"tokens_per_chunk"`
		CumulativeTokens []uint32        `json:"cumulative_tokens"`
		OutputLength     *int64          `json:"osl"`
		ServerTokens     *int64          `json:"server_tokens"`
	}](t, input)

	times := in.ChunksMillis
	var count int
	if in.Chunks != nil && json.Unmarshal(in.Chunks, &times) != nil {
		count = parse[int](t, in.Chunks)
	}
	var tokens []uint32
	if in.TokensPerChunk != nil && json.Unmarshal(in.TokensPerChunk, &tokens) != nil {
		tokens = slices.Repeat([]uint32{parse[uint32](t, in.TokensPerChunk)}, count)
	}
	if times == nil { // the case states only counts
		for i := range tokens {
			times = append(times, float64(i+1))
		}
	}
	for i, n := range in.CumulativeTokens {
		if i > 0 {
			n -= in.CumulativeTokens[i-1]
		}
		tokens = append(tokens, n)
	}

	c := call{reported: in.OutputLength}
	if in.ServerTokens != nil {
		c.reported = in.ServerTokens
	}
	for i, at := range times {
		a := contentAt(scale(at, unit))
		if tokens != nil {
			a.tokens = tokens[i]
		}
		c.arrivals = append(c.arrivals, a)
	}
	switch {
	case in.Start != nil:
		c.start = scale(*in.Start, unit)
	case in.StartMillis != nil:
		c.start = scale(*in.StartMillis, unit)
	case len(c.arrivals) > 0:
		c.start = c.arrivals[0].at
	}
	c.endAtLast()
	return []call{c}
}

// decodeWaits reads the wait before each token, the first one since the start.
func decodeWaits(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct {
		Waits []float64 `json:"inter_token_times"`
		First float64   `json:"ttft_deadline"`
		Next  float64   `json:"tbt_deadline"`
	}](t, input)
	var c call
	var at time.Duration
	for _, wait := range in.Waits {
		at += scale(wait, unit)
		c.arrivals = append(c.arrivals, contentAt(at))
	}
	if in.First > 0 {
		c.deadlines = &FluidityConfig{TimeToFirstToken: scale(in.First, unit), TimePerOutputToken: scale(in.Next, unit)}
	}
	c.endAtLast()
	return []call{c}
}

// decodeGaps reads a time to first token and the gaps after it.
func decodeGaps(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct {
		First     float64   `json:"ttft"`
		Gaps      []float64 `json:"inter_chunk_latency"`
		Output    int64     `json:"output_tokens"`
		Reasoning int64     `json:"reasoning_tokens"`
	}](t, input)
	at := scale(in.First, unit)
	c := call{arrivals: []arrival{contentAt(at)}}
	for _, gap := range in.Gaps {
		at += scale(gap, unit)
		c.arrivals = append(c.arrivals, contentAt(at))
	}
	reported := in.Output + in.Reasoning
	c.reported = &reported
	c.endAtLast()
	return []call{c}
}

// decodeEvents reads the events of one stream, or of several streams by id.
func decodeEvents(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	type event struct {
		T                *float64
		Type, ID         string
		Tokens           *int64
		Content          any
		Reasoning, Usage bool
		CompletionTokens *int64 `json:"completion_tokens"`
	}
	in := parse[struct {
		Start  float64
		Events []event
	}](t, input)
	if in.Events[0].Type != "" {
		byID, ids := map[string]*call{}, []string{}
		for _, e := range in.Events {
			if e.ID == "" {
				continue
			}
			at := scale(*e.T, unit)
			switch e.Type {
			case "ISSUED":
				byID[e.ID], ids = &call{start: at}, append(ids, e.ID)
			case "COMPLETE":
				byID[e.ID].end, byID[e.ID].reported = at, e.Tokens
			default:
				byID[e.ID].arrivals = append(byID[e.ID].arrivals, contentAt(at))
			}
		}
		var calls []call
		for _, id := range ids {
			calls = append(calls, *byID[id])
		}
		return calls
	}

	c := call{start: scale(in.Start, unit)}
	for _, e := range in.Events {
		if e.T == nil {
			continue
		}
		at := scale(*e.T, unit)
		c.end = at
		switch {
		case e.Usage:
			c.reported = e.CompletionTokens
		case e.Content == true || e.Tokens != nil: // a frame with output and reasoning counts as output
			c.arrivals = append(c.arrivals, contentAt(at))
		case e.Reasoning:
			c.arrivals = append(c.arrivals, arrival{at, 1, timeline.Reasoning})
		}
	}
	return []call{c}
}

// decodeTokenTimes reads the time of each token, and the count that the tool divides
// by.
func decodeTokenTimes(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct {
		Start, End   *float64
		TokenTimes   []float64 `json:"token_times"`
		ContentTimes []float64 `json:"content_times"`
		Output       *int64    `json:"output_tokens"`
		OutputLength *int64    `json:"output_len"`
		ServerTokens *int64    `json:"server_tokens"`
		UseServer    bool      `json:"use_server"`
		Error        bool
	}](t, input)
	c := call{start: scale(*in.Start, unit), reported: in.Output, failed: in.Error}
	if in.OutputLength != nil {
		c.reported = in.OutputLength
	}
	if in.UseServer && in.ServerTokens != nil {
		c.reported = in.ServerTokens
	}
	for _, at := range append(in.TokenTimes, in.ContentTimes...) {
		c.arrivals = append(c.arrivals, contentAt(scale(at, unit)))
	}
	c.endAtLast()
	if in.End != nil {
		c.end = scale(*in.End, unit)
	}
	return []call{c}
}

// decodeTokenCounts makes a stream with these numbers of tokens, reasoning first.
func decodeTokenCounts(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct {
		Output    int `json:"output_tokens"`
		Reasoning int `json:"reasoning_tokens"`
	}](t, input)
	var c call
	for i := range in.Output + in.Reasoning {
		a := contentAt(time.Duration(i) * unit)
		if i < in.Reasoning {
			a.channel = timeline.Reasoning
		}
		c.arrivals = append(c.arrivals, a)
	}
	c.endAtLast()
	return []call{c}
}

// decodeDecodeOnly makes two chunks with the case's decode duration between them.
func decodeDecodeOnly(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct {
		Decode       float64 `json:"full_decode_duration"`
		PerToken     float64 `json:"itl_ns"`
		OutputLength *int64  `json:"osl"`
	}](t, input)
	c := call{reported: in.OutputLength, arrivals: []arrival{contentAt(0), contentAt(scale(in.Decode+in.PerToken, unit))}}
	c.endAtLast()
	return []call{c}
}

// decodeContradiction makes a stream whose last chunk is earlier than its first, so
// that the request latency is shorter than the time to first token.
func decodeContradiction(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct{ TTFT, E2E float64 }](t, input)
	c := call{arrivals: []arrival{contentAt(scale(in.TTFT, unit)), contentAt(scale(in.E2E, unit))}}
	c.endAtLast()
	return []call{c}
}

// decodeRecording reads the AIPerf recording, which is too long to be in a case.
func decodeRecording(t *testing.T, input json.RawMessage, _ time.Duration) []call {
	t.Helper()
	require.Equal(t, testenv.RecordingFile, parse[struct{ File string }](t, input).File)
	return readRecording(t)
}

// readRecording returns the calls of the AIPerf recording. Each starts at zero.
func readRecording(t *testing.T) []call {
	t.Helper()
	var calls []call
	for _, request := range testenv.Recording(t) {
		if request.Cancelled {
			calls = append(calls, call{failed: true})
			continue
		}
		c := call{end: time.Duration(request.End - request.Start), reported: &request.OutputTokens}
		for _, chunk := range request.Chunks {
			c.arrivals = append(c.arrivals, contentAt(time.Duration(chunk.Time-request.Start)))
		}
		calls = append(calls, c)
	}
	return calls
}
