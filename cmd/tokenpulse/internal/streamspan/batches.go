// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package streamspan makes of streams the spans that a Collector would get: those of the token_stream receiver, for
// the token_latency processor to read. A stream of which only the first and the last arrival are known becomes a span of
// the OpenTelemetry conventions.
package streamspan

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// batchSpans is the number of spans in a batch.
const batchSpans = 256

// Batches makes spans of streams, in batches. It is not safe for concurrent use.
type Batches struct {
	// Service is the name of the service in resources without one.
	Service string
	// Yield takes each batch. The batch is its own from then on.
	Yield func(ptrace.Traces) error

	traces    ptrace.Traces
	spans     int
	resources map[*stream.Resource]ptrace.SpanSlice // of the batch
	ids       ids

	chunks  []stream.Chunk // buffers for one stream
	line    timeline.Timeline
	encoded []byte
}

// Add adds the span of a stream, and passes on the batch if it is full. The stream is not kept.
func (b *Batches) Add(s *stream.Stream) error {
	if b.spans == 0 {
		b.traces, b.resources = ptrace.NewTraces(), map[*stream.Resource]ptrace.SpanSlice{}
	}
	b.fill(b.spansOf(s.Resource).AppendEmpty(), s)
	if b.spans++; b.spans < batchSpans {
		return nil
	}
	return b.Flush()
}

// Flush passes on the batch, unless it is empty.
func (b *Batches) Flush() error {
	if b.spans == 0 {
		return nil
	}
	b.spans = 0
	return b.Yield(b.traces)
}

func (b *Batches) spansOf(r *stream.Resource) ptrace.SpanSlice {
	spans, ok := b.resources[r]
	if !ok {
		group := b.traces.ResourceSpans().AppendEmpty()
		own := group.Resource().Attributes()
		if r != nil {
			put(own, r.Attributes)
		}
		if name, exists := own.GetOrPutEmpty(names.ServiceName); !exists {
			name.SetStr(cmp.Or(b.Service, names.UnknownService))
		}
		spans = group.ScopeSpans().AppendEmpty().Spans()
		b.resources[r] = spans
	}
	return spans
}

// arrivals returns the chunks that hold tokens or audio, in order and without repeats, as the receiver would keep them: by
// sequence number if all have one, else by time.
func (b *Batches) arrivals(s *stream.Stream) []stream.Chunk {
	b.chunks = b.chunks[:0]
	numbered := true
	for _, c := range s.Chunks {
		if c.Tokens > 0 || c.Channel == timeline.Audio {
			b.chunks = append(b.chunks, c)
			numbered = numbered && c.Sequenced
		}
	}
	slices.SortStableFunc(b.chunks, func(x, y stream.Chunk) int {
		if x.Sequenced && y.Sequenced {
			return cmp.Compare(x.Sequence, y.Sequence)
		}
		return cmp.Compare(unnumbered(x), unnumbered(y))
	})
	b.chunks = slices.CompactFunc(b.chunks, func(x, y stream.Chunk) bool {
		return x.Sequenced && y.Sequenced && x.Sequence == y.Sequence
	})
	if !numbered {
		slices.SortStableFunc(b.chunks, func(x, y stream.Chunk) int { return cmp.Compare(x.Time, y.Time) })
	}
	return b.chunks
}

func unnumbered(c stream.Chunk) int {
	if c.Sequenced {
		return 0
	}
	return 1
}
