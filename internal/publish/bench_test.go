// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
)

// typicalSpan returns the attributes of a stream of 500 tokens about 20 ms apart.
func typicalSpan(random *rand.Rand, model string) map[string]any {
	gaps := make([]float64, 499)
	for i := range gaps {
		gaps[i] = 0.02 * math.Exp(0.3*random.NormFloat64())
	}
	around := func(v float64) float64 { return v * math.Exp(0.3*random.NormFloat64()) }
	return keepertest.Request(map[string]any{
		"gen_ai.request.model":                  model,
		"tokenpulse.time_to_first_token":        around(0.5),
		"tokenpulse.time_to_first_output_token": around(0.5),
		"tokenpulse.time_per_output_token":      around(0.02),
		"tokenpulse.request.duration":           around(10),
		"tokenpulse.queue.duration":             around(0.1),
		"tokenpulse.prefill.duration":           around(0.4),
		"tokenpulse.decode.duration":            around(9),
		"tokenpulse.output_token_rate":          around(50),
		"tokenpulse.inter_token_latency.sketch": encoded(gaps...),
		"gen_ai.usage.input_tokens":             1000,
		"gen_ai.usage.output_tokens":            500,
	})
}

// BenchmarkFlush sends 2,000 series with ten distributions. Each had a request since the
// last flush.
func BenchmarkFlush(b *testing.B) {
	const series = 2000
	for _, temporality := range []Temporality{Cumulative, Delta} {
		b.Run(string(temporality), func(b *testing.B) {
			config := NewDefaultConfig()
			config.Temporality = temporality
			config.Shared.Series.MaxSeries = 2 * series // one service opens half of them
			config.Shared.Deduplication.Horizon = 0     // the same spans count each time
			next, err := consumer.NewMetrics(consumertest.NewNop().ConsumeMetrics)
			if err != nil {
				b.Fatal(err)
			}
			p := newPublisher(b, &config, componenttest.NewNopTelemetrySettings(), next, time.Now)
			random := rand.New(rand.NewPCG(1, 2))
			var spans []map[string]any
			for i := range series {
				spans = append(spans, typicalSpan(random, fmt.Sprint("model-", i)))
			}
			batch := keepertest.Batch(spans...)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				p.Keeper.Record(b.Context(), batch)
				b.StartTimer()
				if err := p.flush(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/series, "ns/series")
			if len(p.sent) != series {
				b.Fatalf("%d series sent, want %d", len(p.sent), series)
			}
		})
	}
}
