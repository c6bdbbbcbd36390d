// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package tokenlatencyprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
)

// A model call without events allocates for its eight numbers and texts, for the list of its three
// estimates, and for one slice that holds all of them. The race detector makes a sync.Pool drop items
// at random, so this test is built without it.
func TestModelCallAllocations(t *testing.T) {
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(typ), annotate.DefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	const spansEach = 100
	ready := modelCalls(t, spansEach)["semconv"]
	copied := testing.AllocsPerRun(20, func() { ready.CopyTo(ptrace.NewTraces()) })
	processed := testing.AllocsPerRun(20, func() {
		traces := ptrace.NewTraces()
		ready.CopyTo(traces)
		if err := p.ConsumeTraces(t.Context(), traces); err != nil {
			t.Error(err)
		}
	})
	require.LessOrEqual(t, (processed-copied)/spansEach, 16.0)
}
