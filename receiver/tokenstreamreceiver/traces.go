// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/identity"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/vantage"
)

// spanMaker makes the spans of finished streams. It is not safe for concurrent use.
type spanMaker struct {
	senders   *identity.Cache[sender]
	timings   timingsWriter
	selection *spanSelection    // nil without series
	latencies latencyTally      // of the spans that are made
	stream    assembly.Finished // that is converted
	from      identity.Stream   // its attributes
	// added is the largest number of attributes that a span had besides those of its sender.
	added int
}

// timingsWriter writes the timings of a finished stream into its span, which has everything else.
type timingsWriter interface {
	write(span ptrace.Span, resource pcommon.Map, stream *assembly.Finished)
}

// spanID identifies the span of a stream. It is zero for a stream without one.
type spanID struct {
	trace [16]byte
	span  [8]byte
}

// madeSpans are the spans of finished streams.
type madeSpans struct {
	traces ptrace.Traces
	ids    []spanID // by stream
	count  int
	// removed is the number of attributes that senders must not set.
	removed   int
	latencies latencyTally
}

// make converts each selected stream to a span. Streams with equal resources share one
// ResourceSpans.
func (m *spanMaker) make(finished []assembly.Finished) madeSpans {
	resources := newResources()
	made := madeSpans{traces: resources.traces, ids: make([]spanID, len(finished))}
	for i := range finished {
		m.stream = finished[i]
		resource := resources.of(m.stream.Resource)
		id := idOf(&m.stream.Start, m.stream.ID, resource.seed())
		chosen := m.selection.choose(id, &m.stream)
		if chosen == notChosen {
			continue
		}
		span, sender := resources.addSpan(resource), m.sender()
		resources.removed += sender.removed
		span.Attributes().EnsureCapacity(sender.attributes.Len() + m.added)
		m.fill(span, id, sender)
		m.timings.write(span, resource.attributes, &m.stream)
		m.selection.mark(span, chosen)
		m.added = max(m.added, span.Attributes().Len()-sender.attributes.Len())
		made.ids[i] = id
		made.count++
	}
	m.stream, m.from, made.removed = assembly.Finished{}, identity.Stream{}, resources.removed
	made.latencies, m.latencies = m.latencies, latencyTally{}
	return made
}

// sender returns what follows from the attributes of the stream.
func (m *spanMaker) sender() *sender {
	m.from = identity.Stream{Attributes: m.stream.Attributes}
	if m.stream.End != nil {
		m.from.EndAttributes = m.stream.End.Attributes
	}
	return m.senders.Find(&m.from)
}

// fill writes what does not depend on the timings into an empty span.
func (m *spanMaker) fill(span ptrace.Span, id spanID, sender *sender) {
	stream := &m.stream
	sender.attributes.CopyTo(span.Attributes())
	span.SetName(sender.spanName)
	span.SetTraceID(id.trace)
	span.SetSpanID(id.span)
	span.SetParentSpanID(stream.Start.ParentSpanID)
	span.SetStartTimestamp(pcommon.Timestamp(stream.Start.UnixNano))
	span.SetEndTimestamp(pcommon.Timestamp(stream.EndUnixNano()))
	setKind(span, vantageOf(stream.Start.Vantage))
	setEnd(span, stream.End)
}

// sender holds what follows from the attributes that the sender of a stream set.
type sender struct {
	attributes pcommon.Map
	spanName   string
	removed    int // attributes that senders must not set
}

// maxSenders is the number of senders that are remembered, by the bytes of their attributes.
const maxSenders = 1 << 12

func newSenders() *identity.Cache[sender] {
	return identity.New(nil, maxSenders, func(s *identity.Stream) *sender {
		attributes := pcommon.NewMap()
		removed := putSenderAttributes(attributes, s.Attributes) + putSenderAttributes(attributes, s.EndAttributes)
		return &sender{attributes, cmp.Or(attribute.SpanName(attributes), names.SourceTokenStream), removed}
	})
}

func setKind(span ptrace.Span, v vantage.Vantage) {
	span.SetKind(ptrace.SpanKindServer)
	if v == vantage.Client || v == vantage.Gateway {
		span.SetKind(ptrace.SpanKindClient)
	}
}

func outcomeOf(end *assembly.End) string {
	if end == nil {
		return names.OutcomeIncomplete
	}
	return outcomeOfEnd(end.Error != "", end.Cancelled)
}

func outcomeOfEnd(failed, cancelled bool) string {
	switch {
	case failed:
		return names.OutcomeError
	case cancelled:
		return names.OutcomeCancelled
	default:
		return names.OutcomeSuccess
	}
}

func setEnd(span ptrace.Span, end *assembly.End) {
	if end == nil {
		return
	}
	if end.Error != "" {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(end.Error)
	}
	attributes := span.Attributes()
	for _, count := range [...]struct {
		key    string
		tokens optional.Value[int64]
	}{
		{names.GenAIInputTokens, end.Usage.Input},
		{names.GenAIOutputTokens, end.Usage.Output},
		{names.GenAIReasoningTokens, end.Usage.Reasoning},
		{names.GenAICacheReadInputTokens, end.Usage.CachedInput},
	} {
		if !count.tokens.Known {
			continue
		}
		if value, exists := attributes.GetOrPutEmpty(count.key); !exists {
			value.SetInt(count.tokens.Value)
		}
	}
	if end.FinishReason != "" {
		if value, exists := attributes.GetOrPutEmpty(names.GenAIFinishReasons); !exists {
			value.SetEmptySlice().AppendEmpty().SetStr(end.FinishReason)
		}
	}
}

// idOf returns the IDs of a stream's span. Missing IDs are derived from the stream, so that a
// stream that is sent twice results in the same span twice. resourceSeed is resource.seed.
func idOf[ID string | []byte](start *assembly.Start, stream ID, resourceSeed []byte) spanID {
	id := spanID{start.TraceID, start.SpanID}
	if id.trace == [16]byte{} || id.span == [8]byte{} {
		derived := deriveIDs(start, stream, resourceSeed)
		if id.trace == [16]byte{} {
			copy(id.trace[:], derived[:16])
		}
		if id.span == [8]byte{} {
			copy(id.span[:], derived[16:])
		}
	}
	return id
}

func deriveIDs[ID string | []byte](start *assembly.Start, stream ID, resourceSeed []byte) [sha256.Size]byte {
	var room [1024]byte // avoids an allocation
	seed := append(room[:0], start.TraceID[:]...)
	seed = append(seed, start.SpanID[:]...)
	seed = append(seed, start.ParentSpanID[:]...)
	seed = binary.BigEndian.AppendUint64(seed, uint64(start.UnixNano))
	seed = append(seed, stream...)
	seed = append(seed, 0)
	seed = append(seed, resourceSeed...)
	return sha256.Sum256(seed)
}
