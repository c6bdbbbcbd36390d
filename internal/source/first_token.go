// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// atEnd is how close to the span's end an event counts as stamped there: some instrumentations add
// their events only when they end the span.
const atEnd = time.Millisecond

// setFirstChunk keeps a time to the first chunk that lies within the request, and counts any other
// as rejected.
func (o *Observation) setFirstChunk(d optional.Value[time.Duration], rank uint8) {
	switch {
	case !d.Known:
	case d.Value < 0:
		o.Rejected[latency.Negative]++
	case d.Value > o.Request.Duration:
		o.Rejected[latency.LongerThanRequest]++
	default:
		o.set(names.TimeToFirstChunk, Reported{Duration: d.Value, Rank: rank})
	}
}

// setFirstChunkAt keeps the Unix time of the first chunk, in nanoseconds.
func (o *Observation) setFirstChunkAt(unixNano optional.Value[int64], estimated bool) {
	if !unixNano.Known {
		return
	}
	after := time.Duration(unixNano.Value - int64(o.start))
	o.Request.FirstToken[latency.AbsoluteTime] = latency.Milestone{Offset: after, Known: true, Estimated: estimated}
	if 0 <= after && after <= o.Request.Duration {
		o.set(names.TimeToFirstChunk, Reported{Duration: after, Rank: absoluteRank})
	}
}

// setFirstTokenEvent keeps the time of an event that marks the first token. It ignores the event on
// a span with dropped events: an earlier event of the same kind may be among those.
func (o *Observation) setFirstTokenEvent(span ptrace.Span, event ptrace.SpanEvent, estimated bool) {
	first := &o.Request.FirstToken[latency.Event]
	after := sinceStart(span, event)
	if first.Known || span.DroppedEventsCount() > 0 || o.Request.Duration-after <= atEnd {
		return
	}
	*first = latency.Milestone{Offset: after, Known: true, Estimated: estimated}
}

func sinceStart(span ptrace.Span, event ptrace.SpanEvent) time.Duration {
	return time.Duration(event.Timestamp() - span.StartTimestamp())
}
