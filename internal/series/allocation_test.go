//go:build !race

package series

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Under the race detector a sync.Pool forgets on purpose, so this test is built
// without it only.
func TestKnownSeriesCostsNoAllocation(t *testing.T) {
	e := newTestEngine(nil)
	r := latency("meta-llama/Llama-3.3-70B-Instruct", e.at(0), 0.1)
	r.SetDistribution(InterTokenLatency, distribution(0.01, 0.02))
	r.SetDistribution(InterChunkLatency, distribution(0.01, 0.02))
	r.SetCount(InputTokens, 7)
	r.TraceID[0] = 1
	e.Record(r)
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Record(r) }))
}

func TestKnownObjectiveCostsNoAllocation(t *testing.T) {
	e := newTestEngine(func(o *Options) { o.Objectives = []Objective{{SLO: "A", Objective: 0.9, Window: time.Hour}} })
	r := judged(e.at(0), "gA", "bB", "nC")
	e.Record(r)
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Record(r) }))
}
