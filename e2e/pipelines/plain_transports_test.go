// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
	"github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// part is the part of a stream in one message or one run of lines.
type part struct {
	stream                *plainStream
	start, scheduled, end bool
	chunks                []reference.Chunk
}

// streamName is the attribute that identifies the stream of a span.
const streamName = "test.stream"

// cutUp splits streams into requests: each stream is whole, or in parts in one or several
// requests. The start is in the first request and the end in the last. Within a request,
// only the order of chunks matters.
func cutUp(random *rand.Rand, streams []*plainStream) [][]part {
	requests := make([][]part, 3)
	for _, s := range streams {
		parts := make([]part, 1+random.IntN(4)*random.IntN(2))
		cuts, in := []int{0}, make([]int, len(parts)) // in holds the request of each part
		for i := range parts {
			cuts = append(cuts, random.IntN(len(s.Chunks)+1))
			in[i] = random.IntN(len(requests))
		}
		cuts[len(parts)] = len(s.Chunks)
		slices.Sort(cuts)
		slices.Sort(in)
		for i := range parts {
			parts[i] = part{stream: s, chunks: s.Chunks[cuts[i]:cuts[i+1]]}
		}
		together := func(with int) []int { // the parts in the same request as one part
			var same []int
			for i := range parts {
				if in[i] == in[with] {
					same = append(same, i)
				}
			}
			return same
		}
		oneOf := func(these []int) *part { return &parts[these[random.IntN(len(these))]] }
		oneOf(together(0)).start = true
		oneOf(together(len(parts) - 1)).end = !s.NoEnd
		parts[random.IntN(len(parts))].scheduled = s.Scheduled != 0
		for i, p := range parts {
			requests[in[i]] = append(requests[in[i]], p)
		}
	}
	for _, parts := range requests {
		interleave(random, parts)
	}
	return requests
}

// interleave shuffles the parts of different streams. The parts of one stay in order.
func interleave(random *rand.Rand, parts []part) {
	own := map[*plainStream][]part{}
	for _, p := range parts {
		own[p.stream] = append(own[p.stream], p)
	}
	random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	for i, p := range parts {
		parts[i], own[p.stream] = own[p.stream][0], own[p.stream][1:]
	}
}

// messageOf returns the protobuf request for parts.
func messageOf(random *rand.Rand, service string, parts []part) *tokenpulsev1.ExportTokenStreamsRequest {
	streams := &tokenpulsev1.ResourceTokenStreams{
		Resource: &resourcev1.Resource{Attributes: []*commonv1.KeyValue{tokenevents.KeyValue("service.name", service)}},
	}
	for _, p := range parts {
		s := p.stream
		message := &tokenpulsev1.TokenStream{StreamId: service + s.id, ChunkRuns: runsOf(random, p.chunks)}
		if p.start {
			message.Start = &tokenpulsev1.StreamStart{
				TimeUnixNano: uint64(s.Start),
				Vantage:      tokenpulsev1.Vantage(slices.Index([]string{"", "client", "gateway", "server", "engine"}, s.vantage)),
				Attributes:   []*commonv1.KeyValue{tokenevents.KeyValue(streamName, s.id)},
			}
		}
		if p.scheduled {
			message.ScheduledTimeUnixNano = uint64(s.Scheduled)
		}
		if p.end {
			count := func(n int64) *uint64 {
				if n < 0 {
					return nil
				}
				return new(uint64(n))
			}
			message.End = &tokenpulsev1.StreamEnd{
				TimeUnixNano: uint64(s.End), Error: s.Failure, Cancelled: s.Cancelled,
				Usage: &tokenpulsev1.Usage{
					InputTokens: count(s.Usage.Input), OutputTokens: count(s.Usage.Output),
					ReasoningTokens: count(s.Usage.Reasoning), CachedInputTokens: count(s.Usage.CachedInput), CacheWriteInputTokens: count(s.Usage.CacheWrite),
				},
			}
		}
		streams.TokenStreams = append(streams.TokenStreams, message)
	}
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{streams}}
}

// runsOf packs consecutive chunks of one channel into runs, in any of the encodings
// that a sender may choose.
func runsOf(random *rand.Rand, chunks []reference.Chunk) []*tokenpulsev1.ChunkRun {
	var runs []*tokenpulsev1.ChunkRun
	for len(chunks) > 0 {
		first, length := chunks[0], 1
		for ; length < len(chunks); length++ {
			c, before := chunks[length], chunks[length-1]
			if c.Channel != first.Channel || c.Numbered != first.Numbered || c.Numbered && c.Sequence != before.Sequence+1 || random.IntN(300) == 0 {
				break
			}
		}
		runs = append(runs, runOf(random, chunks[:length]))
		chunks = chunks[length:]
	}
	return runs
}

func runOf(random *rand.Rand, chunks []reference.Chunk) *tokenpulsev1.ChunkRun {
	first := chunks[0]
	run := &tokenpulsev1.ChunkRun{
		Channel: tokenpulsev1.Channel(slices.Index([]string{"content", "reasoning", "tool_call"}, first.Channel)),
	}
	if first.Numbered {
		run.FirstSequenceNumber = new(first.Sequence)
	}
	unit := int64(microsecond)
	writeTokens := random.IntN(10) == 0
	for _, c := range chunks {
		if (c.At-first.At)%unit != 0 {
			unit = 1
		}
		writeTokens = writeTokens || c.Tokens != 1
	}
	if random.IntN(10) == 0 {
		unit = 1
	}
	if unit > 1 || random.IntN(2) == 0 { // the default is a nanosecond
		run.DeltaUnitNanos = uint64(unit)
	}
	at := first.At
	if random.IntN(5) == 0 {
		at += unit * (random.Int64N(2000) - 1000)
	}
	run.TimeUnixNano = uint64(at)
	for _, c := range chunks {
		run.TimeDeltas = append(run.TimeDeltas, (c.At-at)/unit)
		at = c.At
		if writeTokens {
			run.Tokens = append(run.Tokens, uint32(c.Tokens))
		}
	}
	return run
}

// linesOf returns the lines of parts, with interleaved streams. In a live body, which is
// applied line by line, the start is first and the end last.
func linesOf(random *rand.Rand, service string, parts []part, live bool) string {
	own := map[*plainStream][]string{}
	var turns []*plainStream
	for _, p := range parts {
		if own[p.stream] == nil {
			turns = append(turns, p.stream)
		}
		own[p.stream] = append(own[p.stream], p.lines(random, service)...)
	}
	for _, s := range turns { // not the map: equal seeds make equal lines
		lines := own[s]
		slices.SortStableFunc(lines, func(a, b string) int { return lineOrder(a) - lineOrder(b) })
		if !live {
			lines = moveAmong(random, lines, `"start"`)
			own[s] = moveAmong(random, lines, `"end"`)
		}
	}
	var body strings.Builder
	for len(turns) > 0 {
		turn := random.IntN(len(turns))
		s := turns[turn]
		some := min(1+random.IntN(3), len(own[s]))
		for _, line := range own[s][:some] {
			body.WriteString(line + "\n")
		}
		if own[s] = own[s][some:]; len(own[s]) == 0 {
			turns = slices.Delete(turns, turn, turn+1)
		}
	}
	return body.String()
}

func lineOrder(line string) int {
	switch {
	case strings.Contains(line, `"start"`):
		return 0
	case strings.Contains(line, `"end"`):
		return 2
	default:
		return 1
	}
}

// moveAmong moves the line of an event to a random place, in a third of the calls.
func moveAmong(random *rand.Rand, lines []string, event string) []string {
	at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, event) })
	if at < 0 || random.IntN(3) != 0 {
		return lines
	}
	line := lines[at]
	lines = slices.Delete(lines, at, at+1)
	return slices.Insert(lines, random.IntN(len(lines)+1), line)
}

func (p *part) lines(random *rand.Rand, service string) []string {
	s := p.stream
	var lines []string
	line := func(event string, at int64, more map[string]any) {
		lines = append(lines, lineOf(random, event, service+s.id, at, more))
	}
	if p.start {
		more := map[string]any{
			"resource":   map[string]string{"service.name": service},
			"attributes": map[string]string{streamName: s.id},
		}
		if s.vantage != "" {
			more["vantage"] = s.vantage
		}
		line("start", s.Start, more)
	}
	if p.scheduled {
		line("scheduled", s.Scheduled, nil)
	}
	for _, c := range p.chunks {
		more := map[string]any{}
		if c.Tokens != 1 || random.IntN(3) == 0 {
			more["tokens"] = c.Tokens
		}
		if c.Channel != "content" || random.IntN(3) == 0 {
			more["channel"] = c.Channel
		}
		if c.Numbered {
			more["seq"] = c.Sequence
		}
		if random.IntN(30) == 0 {
			more["text"] = "a \"text\"\n"
		}
		line("chunk", c.At, more)
	}
	if p.end {
		usage := map[string]int64{}
		for name, n := range map[string]int64{
			"input_tokens": s.Usage.Input, "output_tokens": s.Usage.Output, "reasoning_tokens": s.Usage.Reasoning, "cached_input_tokens": s.Usage.CachedInput,
			"cache_write_input_tokens": s.Usage.CacheWrite,
		} {
			if n >= 0 {
				usage[name] = n
			}
		}
		more := map[string]any{"usage": usage}
		if s.Failure != "" {
			more["error"] = s.Failure
		}
		if s.Cancelled {
			more["cancelled"] = true
		}
		line("end", s.End, more)
	}
	return lines
}

// lineOf writes an event in any of the forms that a sender may choose.
func lineOf(random *rand.Rand, event, id string, at int64, more map[string]any) string {
	quoted := func(v any) string {
		text, _ := json.Marshal(v)
		return string(text)
	}
	members := []string{`"event":` + quoted(event), `"stream_id":` + quoted(id)}
	switch {
	case at == 0:
	case random.IntN(10) == 0:
		members = append(members, `"time":`+quoted(time.Unix(0, at).UTC().Format(time.RFC3339Nano)))
	case random.IntN(3) == 0:
		members = append(members, `"time_unix_nano":`+strconv.FormatInt(at, 10))
	default:
		members = append(members, `"time_unix_nano":`+quoted(strconv.FormatInt(at, 10)))
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		members = append(members, quoted(name)+":"+quoted(more[name]))
	}
	separator := ","
	switch random.IntN(10) {
	case 0:
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	case 1:
		separator = ", "
	case 2:
		separator = " ,\t"
	}
	return "{" + strings.Join(members, separator) + "}"
}

type sendParts func(t *testing.T, random *rand.Rand, c *collector.Collector, service string, requests [][]part)

func messagesPosted(contentType string, marshal func(proto.Message) ([]byte, error)) sendParts {
	return func(t *testing.T, random *rand.Rand, c *collector.Collector, service string, requests [][]part) {
		t.Helper()
		for _, parts := range requests {
			body, err := marshal(messageOf(random, service, parts))
			require.NoError(t, err)
			c.Post(t, contentType, bytes.NewReader(body))
		}
	}
}

// plainTransports are all ways to send parts.
var plainTransports = []struct {
	name string
	send sendParts
}{
	{"ndjson", func(t *testing.T, random *rand.Rand, c *collector.Collector, service string, requests [][]part) {
		t.Helper()
		for _, parts := range requests {
			c.Post(t, "application/x-ndjson", strings.NewReader(linesOf(random, service, parts, false)))
		}
	}},
	{"ndjson-live", func(t *testing.T, random *rand.Rand, c *collector.Collector, service string, requests [][]part) {
		t.Helper()
		for _, parts := range requests {
			body := linesOf(random, service, parts, true)
			c.Post(t, "application/x-ndjson", io.MultiReader(strings.NewReader(body))) // without a declared length
		}
	}},
	{"json", messagesPosted("application/json", protojson.Marshal)},
	{"protobuf", messagesPosted("application/x-protobuf", proto.Marshal)},
	{"grpc", func(t *testing.T, random *rand.Rand, c *collector.Collector, service string, requests [][]part) {
		t.Helper()
		client := c.TokenStreams(t)
		for _, parts := range requests {
			answer, err := client.Export(t.Context(), messageOf(random, service, parts))
			require.NoError(t, err)
			require.Nil(t, answer.GetPartialSuccess())
		}
	}},
	{"grpc-stream", func(t *testing.T, random *rand.Rand, c *collector.Collector, service string, requests [][]part) {
		t.Helper()
		call, err := c.TokenStreams(t).Stream(t.Context())
		require.NoError(t, err)
		for _, parts := range requests {
			require.NoError(t, call.Send(messageOf(random, service, parts)))
		}
		answer, err := call.CloseAndRecv()
		require.NoError(t, err)
		require.Nil(t, answer.GetPartialSuccess())
	}},
}
