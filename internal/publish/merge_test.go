// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
)

// distribution is a histogram, or a counter as its sum.
type distribution struct {
	count, zeros uint64
	sum          float64
	buckets      map[int]uint64 // by index of OpenTelemetry
}

// randomSpan returns attributes whose numbers are multiples of 2^-10, so that sums are
// exact in any order.
func randomSpan(random *rand.Rand) map[string]any {
	v := func() float64 { return float64(1+random.IntN(1<<12)) / (1 << 10) }
	return map[string]any{
		"tokenpulse.outcome":                    []string{"success", "error", "cancelled"}[random.IntN(3)],
		"tokenpulse.vantage":                    "server",
		"gen_ai.request.model":                  fmt.Sprint("model-", random.IntN(3)),
		"tokenpulse.time_to_first_token":        v(),
		"tokenpulse.queue.duration":             float64(random.IntN(2)),
		"tokenpulse.decode.duration":            v(),
		"tokenpulse.inter_token_latency.sketch": encoded(v(), v(), 0, v()),
		"gen_ai.usage.output_tokens":            random.IntN(100),
		"tokenpulse.stall.duration":             v(),
	}
}

func randomBatches(n int) (all []ptrace.Traces) {
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		all = append(all, keepertest.Batch(randomSpan(random), randomSpan(random), randomSpan(random)))
	}
	return all
}

// addUp adds the data points of a batch to the totals of each stream.
func addUp(into map[string]*distribution, metrics pmetric.Metrics) {
	stream := func(name, attributes string) *distribution {
		id := name + "{" + attributes + "}"
		if into[id] == nil {
			into[id] = &distribution{buckets: map[int]uint64{}}
		}
		return into[id]
	}
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for _, p := range numberPoints(m).All() {
			stream(m.Name(), show(p.Attributes())).sum += p.DoubleValue() + float64(p.IntValue())
		}
		if m.Type() != pmetric.MetricTypeExponentialHistogram {
			continue
		}
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			d := stream(m.Name(), show(p.Attributes()))
			d.count += p.Count()
			d.zeros += p.ZeroCount()
			d.sum += p.Sum()
			for i, n := range p.Positive().BucketCounts().All() {
				if n > 0 {
					d.buckets[int(p.Positive().Offset())+i] += n
				}
			}
		}
	}
}

// sentBy adds the data points that a publisher sends for the batches.
func sentBy(t *testing.T, into map[string]*distribution, batches ...ptrace.Traces) {
	t.Helper()
	h := newHarness(t, nil)
	for _, batch := range batches {
		h.Keeper.Record(t.Context(), batch)
	}
	h.seconds += 15
	require.NoError(t, h.flush(t.Context()))
	addUp(into, h.to.AllMetrics()[0])
}

func TestFlush_DeltasAddUpToCumulativeDespiteRefusals(t *testing.T) {
	batches := randomBatches(200)
	added, whole := map[string]*distribution{}, map[string]*distribution{}
	sentBy(t, whole, batches...)

	random := rand.New(rand.NewPCG(3, 4))
	h := newHarness(t, delta)
	for _, batch := range batches {
		h.seconds++
		h.Keeper.Record(t.Context(), batch)
		if random.IntN(3) == 0 {
			h.to.refuses = random.IntN(2) == 0
			_ = h.flush(t.Context())
		}
	}
	h.to.refuses = false
	require.NoError(t, h.flush(t.Context()))
	for _, metrics := range h.to.AllMetrics() {
		addUp(added, metrics)
	}
	for id, d := range whole { // delta leaves out streams with only zeros
		if d.sum == 0 && d.count == 0 {
			delete(whole, id)
		}
	}
	require.Equal(t, whole, added)
}

func TestFlush_ConcurrentRecordsAreNotLost(t *testing.T) {
	const writers = 4
	h := newHarness(t, func(c *Config) { delta(c); c.FlushInterval = minFlushInterval })
	h.now = time.Now
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	var writing sync.WaitGroup
	for range writers {
		batches := randomBatches(100)
		writing.Go(func() {
			for _, batch := range batches {
				h.Keeper.Record(t.Context(), batch)
			}
		})
	}
	writing.Wait()
	h.Keeper.Shutdown(t.Context())
	added := map[string]*distribution{}
	for _, metrics := range h.to.AllMetrics() {
		addUp(added, metrics)
	}
	total := 0.0
	for _, outcome := range []string{"success", "error", "cancelled"} {
		for model := range 3 {
			total += added[fmt.Sprintf("tokenpulse.requests{gen_ai.request.model=model-%d,outcome=%s,service.name=chat,vantage=server}", model, outcome)].sum
		}
	}
	require.InDelta(t, writers*300, total, 0)
}
