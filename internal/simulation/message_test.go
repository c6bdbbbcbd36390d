// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// part is a run of events of one stream: from is the first, to is after the last.
type part struct {
	*stream
	from, to int
}

func (p part) hasStart() bool { return p.from == 0 }
func (p part) hasEnd() bool   { return p.to == p.events() }

// chunkRange returns the chunks of the part, as indexes of the stream's chunks.
func (p part) chunkRange() (from, to int) {
	return max(0, p.from-1), min(len(p.chunks), p.to-1)
}

// encodings of a request.
const (
	asNDJSON = iota
	asJSON
	asProtobuf
	encodings
)

// message is one request of a client.
type message struct {
	number   int
	client   int
	encoding int
	parts    []part
}

func (m *message) String() string {
	var parts []string
	for _, p := range m.parts {
		parts = append(parts, fmt.Sprintf("%s[%d:%d/%d]", p.id, p.from, p.to, p.events()))
	}
	return fmt.Sprintf("message %d of client %d in %s: %s", m.number, m.client,
		[...]string{"NDJSON", "JSON", "protobuf"}[m.encoding], strings.Join(parts, " "))
}

// units returns the number of units that the receiver counts for a part.
func (m *message) units(p part) int {
	if m.encoding == asNDJSON {
		return p.to - p.from
	}
	return 1
}

func (m *message) encode() (body []byte, contentType string) {
	if m.encoding == asNDJSON {
		var b bytes.Buffer
		for _, p := range m.parts {
			for event := p.from; event < p.to; event++ {
				p.line(&b, event)
			}
		}
		return b.Bytes(), "application/x-ndjson"
	}
	request := &tokenpulsev1.ExportTokenStreamsRequest{}
	for _, p := range m.parts {
		request.ResourceTokenStreams = append(request.ResourceTokenStreams, &tokenpulsev1.ResourceTokenStreams{
			Resource:     &resourcev1.Resource{Attributes: []*commonv1.KeyValue{text("service.name", p.service)}},
			TokenStreams: []*tokenpulsev1.TokenStream{p.message()},
		})
	}
	var err error
	if m.encoding == asJSON {
		contentType = "application/json"
		body, err = protojson.Marshal(request)
	} else {
		contentType = "application/x-protobuf"
		body, err = proto.Marshal(request)
	}
	if err != nil {
		panic(err)
	}
	return body, contentType
}

// line writes one event as a line of NDJSON.
func (s *stream) line(b *bytes.Buffer, event int) {
	switch event {
	case 0:
		fmt.Fprintf(b, `{"event":"start","stream_id":%q,"time_unix_nano":"%d","vantage":%q,"resource":{"service.name":%q},"attributes":{"gen_ai.request.model":%q,%q:%q,"padding":%q}`,
			s.id, s.start, s.vantage, s.service, s.model, idAttribute, s.id, strings.Repeat("x", s.padding))
		if s.traceID != [16]byte{} {
			fmt.Fprintf(b, `,"trace_id":%q,"span_id":%q`, hex.EncodeToString(s.traceID[:]), hex.EncodeToString(s.spanID[:]))
		}
	case s.events() - 1:
		fmt.Fprintf(b, `{"event":"end","stream_id":%q,"time_unix_nano":"%d"`, s.id, s.end)
		if s.usage {
			fmt.Fprintf(b, `,"usage":{"input_tokens":%d,"output_tokens":%d}`, inputTokens, tokensOf(s.chunks))
		}
		switch s.outcome {
		case "error":
			b.WriteString(`,"error":"overloaded"`)
		case "cancelled":
			b.WriteString(`,"cancelled":true`)
		}
	default:
		c := s.chunks[event-1]
		fmt.Fprintf(b, `{"event":"chunk","stream_id":%q,"time_unix_nano":"%d","tokens":%d,"seq":%d`, s.id, c.at, c.tokens, event-1)
	}
	b.WriteString("}\n")
}

// message returns the events of a part as a message of the schema.
func (p part) message() *tokenpulsev1.TokenStream {
	m := &tokenpulsev1.TokenStream{StreamId: p.id}
	if p.hasStart() {
		m.Start = &tokenpulsev1.StreamStart{
			TimeUnixNano: uint64(p.start),
			Vantage:      map[string]tokenpulsev1.Vantage{"server": tokenpulsev1.Vantage_VANTAGE_SERVER, "client": tokenpulsev1.Vantage_VANTAGE_CLIENT}[p.vantage],
			Attributes:   []*commonv1.KeyValue{text("gen_ai.request.model", p.model), text(idAttribute, p.id), text("padding", strings.Repeat("x", p.padding))},
		}
		if p.traceID != [16]byte{} {
			m.Start.TraceId, m.Start.SpanId = p.traceID[:], p.spanID[:]
		}
	}
	if from, to := p.chunkRange(); from < to {
		seq := uint64(from)
		run := &tokenpulsev1.ChunkRun{TimeUnixNano: uint64(p.chunks[from].at), FirstSequenceNumber: &seq}
		before := p.chunks[from].at
		for _, c := range p.chunks[from:to] {
			run.TimeDeltas = append(run.TimeDeltas, c.at-before)
			run.Tokens = append(run.Tokens, uint32(c.tokens))
			before = c.at
		}
		if p.usual {
			run.FirstSequenceNumber, run.Tokens, run.DeltaUnitNanos = nil, nil, 1000
			for i := range run.TimeDeltas {
				run.TimeDeltas[i] /= 1000
			}
		}
		m.ChunkRuns = append(m.ChunkRuns, run)
	}
	if p.hasEnd() {
		m.End = &tokenpulsev1.StreamEnd{TimeUnixNano: uint64(p.end), Cancelled: p.outcome == "cancelled"}
		if p.outcome == "error" {
			m.End.Error = "overloaded"
		}
		if p.usage {
			in, out := uint64(inputTokens), uint64(tokensOf(p.chunks))
			m.End.Usage = &tokenpulsev1.Usage{InputTokens: &in, OutputTokens: &out}
		}
	}
	return m
}

// idAttribute is the span attribute that holds the ID of the stream.
const idAttribute = "simulation.stream"

func text(key, value string) *commonv1.KeyValue {
	return &commonv1.KeyValue{Key: key, Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: value}}}
}

func tokensOf(chunks []chunk) (n int) {
	for _, c := range chunks {
		n += c.tokens
	}
	return n
}
