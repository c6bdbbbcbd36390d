// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// batchOf returns a batch of one service with a span of each trace.
func batchOf(service string, traces ...byte) ptrace.Traces {
	batch := ptrace.NewTraces()
	resource := batch.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	scope := resource.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("of " + service)
	for _, trace := range traces {
		scope.Spans().AppendEmpty().SetTraceID(pcommon.TraceID{trace})
	}
	return batch
}

// ended returns the traces that end with these batches: the services of the spans of each.
func ended(t *testing.T, limit int, batches ...ptrace.Traces) (ends []byte, services map[byte][]string) {
	t.Helper()
	services = map[byte][]string{}
	w := newWholeTraces(func(traces ptrace.Traces) error {
		var id byte
		for _, resource := range traces.ResourceSpans().All() {
			service, _ := resource.Resource().Attributes().Get("service.name")
			for _, scope := range resource.ScopeSpans().All() {
				require.Equal(t, "of "+service.Str(), scope.Scope().Name())
				for _, span := range scope.Spans().All() {
					id = span.TraceID()[0]
					services[id] = append(services[id], service.Str())
				}
			}
		}
		ends = append(ends, id)
		return nil
	})
	w.limit = limit
	for _, batch := range batches {
		require.NoError(t, w.add(batch))
		require.LessOrEqual(t, w.held, limit)
	}
	require.NoError(t, w.flush())
	require.Zero(t, w.held)
	require.Empty(t, w.traces)
	return ends, services
}

func TestWholeTraces_SpansOfSeveralBatchesComeInOne(t *testing.T) {
	ends, services := ended(t, 100, batchOf("client", 1, 2), batchOf("engine", 2, 1, 1))
	require.Equal(t, []byte{2, 1}, ends)
	require.Equal(t, map[byte][]string{1: {"client", "engine", "engine"}, 2: {"client", "engine"}}, services)
}

// The trace that got no span for longest ends first, not the oldest.
func TestWholeTraces_AtTheLimitTheTraceThatWaitsLongestEnds(t *testing.T) {
	ends, _ := ended(t, 4, batchOf("client", 1, 2), batchOf("engine", 1), batchOf("client", 3, 4))
	require.Equal(t, []byte{2, 1, 3, 4}, ends)
}
