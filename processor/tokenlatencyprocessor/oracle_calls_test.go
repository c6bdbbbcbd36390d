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
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// call is one request of an oracle case.
type call struct {
	reference.Stream
	deadlines *FluidityConfig
}

// newCall returns a call that starts at the origin of all cases.
func newCall() call { return call{Stream: reference.Stream{Start: epoch, Usage: reference.NoUsage}} }

// span returns the span that the token_stream receiver makes of the call.
func (c *call) span() ptrace.Traces {
	var line timeline.Timeline
	for _, chunk := range c.Chunks {
		channel := timeline.Content
		if chunk.Channel == reference.Reasoning {
			channel = timeline.Reasoning
		}
		line.Append(chunk.At, uint32(chunk.Tokens), channel)
	}
	traces, spans := newSpans()
	span := spans.AppendEmpty()
	span.SetStartTimestamp(pcommon.Timestamp(c.Start))
	span.SetEndTimestamp(pcommon.Timestamp(c.End))
	span.Attributes().PutEmptyBytes(names.Timeline).FromRaw(line.AppendBinary(nil, c.Start))
	if c.Usage.Output >= 0 {
		span.Attributes().PutInt(names.GenAIOutputTokens, c.Usage.Output)
	}
	if c.Failure != "" {
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

// moment converts a time of a case, which counts from an arbitrary origin.
func moment(v float64, unit time.Duration) int64 { return epoch + int64(scale(v, unit)) }

// addContent adds a chunk of one token.
func (c *call) addContent(at int64) { c.add(at, reference.Content) }

func (c *call) add(at int64, channel string) {
	c.Chunks = append(c.Chunks, reference.Chunk{At: at, Tokens: 1, Channel: channel, Sequence: uint64(len(c.Chunks)), Numbered: true})
}

// report sets the number of tokens that the tool divides by.
func (c *call) report(output *int64) {
	if output != nil {
		c.Usage.Output = *output
	}
}

// endAtLast ends a call with its last chunk, as tools do that measure at the client.
func (c *call) endAtLast() {
	c.End = c.Start
	if n := len(c.Chunks); n > 0 {
		c.End = max(c.Start, c.Chunks[n-1].At)
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
		CumulativeTokens []int64         `json:"cumulative_tokens"`
		OutputLength     *int64          `json:"osl"`
		ServerTokens     *int64          `json:"server_tokens"`
	}](t, input)

	times := in.ChunksMillis
	var count int
	if in.Chunks != nil && json.Unmarshal(in.Chunks, &times) != nil {
		count = parse[int](t, in.Chunks)
	}
	var tokens []int64
	if in.TokensPerChunk != nil && json.Unmarshal(in.TokensPerChunk, &tokens) != nil {
		tokens = slices.Repeat([]int64{parse[int64](t, in.TokensPerChunk)}, count)
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

	c := newCall()
	c.report(in.OutputLength)
	c.report(in.ServerTokens)
	for i, at := range times {
		c.addContent(moment(at, unit))
		if tokens != nil {
			c.Chunks[i].Tokens = tokens[i]
		}
	}
	switch {
	case in.Start != nil:
		c.Start = moment(*in.Start, unit)
	case in.StartMillis != nil:
		c.Start = moment(*in.StartMillis, unit)
	case len(c.Chunks) > 0:
		c.Start = c.Chunks[0].At
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
	c := newCall()
	at := c.Start
	for _, wait := range in.Waits {
		at += int64(scale(wait, unit))
		c.addContent(at)
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
	c := newCall()
	at := moment(in.First, unit)
	c.addContent(at)
	for _, gap := range in.Gaps {
		at += int64(scale(gap, unit))
		c.addContent(at)
	}
	c.Usage.Output = in.Output + in.Reasoning
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
			at := moment(*e.T, unit)
			switch e.Type {
			case "ISSUED":
				c := newCall()
				c.Start = at
				byID[e.ID], ids = &c, append(ids, e.ID)
			case "COMPLETE":
				byID[e.ID].End = at
				byID[e.ID].report(e.Tokens)
			default:
				byID[e.ID].addContent(at)
			}
		}
		var calls []call
		for _, id := range ids {
			calls = append(calls, *byID[id])
		}
		return calls
	}

	c := newCall()
	c.Start = moment(in.Start, unit)
	for _, e := range in.Events {
		if e.T == nil {
			continue
		}
		c.End = moment(*e.T, unit)
		switch {
		case e.Usage:
			c.report(e.CompletionTokens)
		case e.Content == true || e.Tokens != nil: // a frame with output and reasoning counts as output
			c.addContent(c.End)
		case e.Reasoning:
			c.add(c.End, reference.Reasoning)
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
	c := newCall()
	c.Start = moment(*in.Start, unit)
	c.report(in.Output)
	c.report(in.OutputLength)
	if in.UseServer {
		c.report(in.ServerTokens)
	}
	if in.Error {
		c.Failure = "failed"
	}
	for _, at := range append(in.TokenTimes, in.ContentTimes...) {
		c.addContent(moment(at, unit))
	}
	c.endAtLast()
	if in.End != nil {
		c.End = moment(*in.End, unit)
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
	c := newCall()
	for i := range in.Output + in.Reasoning {
		c.addContent(moment(float64(i), unit))
		if i < in.Reasoning {
			c.Chunks[i].Channel = reference.Reasoning
		}
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
	c := newCall()
	c.report(in.OutputLength)
	c.addContent(c.Start)
	c.addContent(moment(in.Decode+in.PerToken, unit))
	c.endAtLast()
	return []call{c}
}

// decodeContradiction makes a stream whose last chunk is earlier than its first, so
// that the request latency is shorter than the time to first token.
func decodeContradiction(t *testing.T, input json.RawMessage, unit time.Duration) []call {
	t.Helper()
	in := parse[struct{ TTFT, E2E float64 }](t, input)
	c := newCall()
	c.addContent(moment(in.TTFT, unit))
	c.addContent(moment(in.E2E, unit))
	c.endAtLast()
	return []call{c}
}

// decodeRecording reads the AIPerf recording, which is too long to be in a case.
func decodeRecording(t *testing.T, input json.RawMessage, _ time.Duration) []call {
	t.Helper()
	require.Equal(t, testenv.RecordingFile, parse[struct{ File string }](t, input).File)
	return readRecording(t)
}

// readRecording returns the calls of the AIPerf recording.
func readRecording(t *testing.T) []call {
	t.Helper()
	var calls []call
	for _, request := range reference.Recording(t) {
		if request.Cancelled {
			request.Failure = "cancelled" // the span below has no other way to say so
		}
		calls = append(calls, call{Stream: request.Stream})
	}
	return calls
}
