//go:build !race

package tokenlatencyprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
)

// A model call without events costs what its eleven numbers and texts do, the list of
// the five that are estimates, and one slice that is large enough for all of them.
// Under the race detector a sync.Pool forgets on purpose, so this test is built without
// it only.
func TestModelCallAllocations(t *testing.T) {
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(typ), createDefaultConfig(), consumertest.NewNop())
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
	require.LessOrEqual(t, (processed-copied)/spansEach, 21.0)
}
