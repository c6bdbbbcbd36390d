// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keepertest

import (
	"maps"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

var identified atomic.Uint32

// Identify gives a span IDs that no other has.
func Identify(span ptrace.Span) {
	n := identified.Add(1)
	span.SetTraceID([16]byte{1, 8: byte(n), 9: byte(n >> 8), 10: byte(n >> 16), 11: byte(n >> 24)})
	span.SetSpanID([8]byte{2})
}

// Batch returns one span with each of these attributes, all of one service. No two spans have the
// same IDs, also not those of different batches.
func Batch(spans ...map[string]any) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr(names.ServiceName, "chat")
	scope := resource.ScopeSpans().AppendEmpty()
	for _, attributes := range spans {
		span := scope.Spans().AppendEmpty()
		Identify(span)
		span.SetStartTimestamp(1)
		span.SetEndTimestamp(pcommon.Timestamp(24 * time.Hour))
		if err := span.Attributes().FromRaw(attributes); err != nil {
			panic(err)
		}
	}
	return traces
}

// Request returns the attributes of a successful request.
func Request(more map[string]any) map[string]any {
	attributes := map[string]any{names.Outcome: names.OutcomeSuccess}
	maps.Copy(attributes, more)
	return attributes
}
