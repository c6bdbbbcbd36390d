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

// inspect is called with the tree of each batch.
func (p *pieces) inspect(t *tree) {
	p.doubts.Report(diagnostics.TracesInPieces, p.count(t), "")
}

func (p *pieces) count(t *tree) diagnostics.Facts {
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
	return diagnostics.Facts{Cases: p.broken, All: p.traces}
}
