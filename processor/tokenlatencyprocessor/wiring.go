// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
)

// pieces recognises traces that arrive in several batches, which join and roll_up cannot
// put together.
type pieces struct {
	doubts *diagnostics.Doubts

	// mu guards everything declared below.
	mu             sync.Mutex
	batch          uint64
	recent         [1024]piece // by hash of the trace ID; a later trace replaces an earlier one
	traces, broken int64
}

// piece is what one batch had of a trace.
type piece struct {
	trace pcommon.TraceID
	first pcommon.SpanID
	batch uint64
}

// The warning needs this many traces in pieces, and this share of all traces. Fewer may be late spans.
const (
	minBroken   = 20
	brokenShare = 0.1
)

// inspect is called with the tree of each batch.
func (p *pieces) inspect(t *tree) {
	if !p.areCommon(t) {
		return
	}
	p.doubts.Raise("traces arrive in pieces, so `join` and `roll_up` miss the spans in other batches; "+
		"put groupbytrace in front of token_latency, with no batch processor in between; "+
		"if several Collectors share the traffic, send all spans of a trace to one of them", "")
}

func (p *pieces) areCommon(t *tree) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch++
	for i := range t.nodes {
		span := t.nodes[i].span
		trace := span.TraceID()
		if trace.IsEmpty() {
			continue
		}
		slot := &p.recent[(int(trace[14])<<8|int(trace[15]))%len(p.recent)]
		known := slot.trace == trace
		if known && slot.batch == p.batch {
			continue
		}
		if !known {
			p.traces++
			*slot = piece{trace: trace, first: span.SpanID()}
		} else if slot.first != span.SpanID() { // otherwise a batch that is sent again
			p.broken++
		}
		slot.batch = p.batch
	}
	return p.broken >= minBroken && float64(p.broken) >= brokenShare*float64(p.traces)
}
