// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkPage measures the cost per span with the page on, divided by that with it off. Both
// take turns, so that what else the machine does affects both.
func BenchmarkPage(b *testing.B) {
	const spans, turns = 100, 20
	batches := typicalBatches(8, spans)
	exporters := map[bool]*tokenSLI{}
	for _, on := range []bool{true, false} {
		exporters[on], _ = unstarted(b, func(c *Config) { c.Page.Enabled = on })
	}
	var ratios []float64
	for n := range 1 + b.N {
		took := map[bool]time.Duration{}
		for _, on := range []bool{false, true, true, false} {
			start := time.Now()
			for i := range turns {
				if err := exporters[on].consume(b.Context(), again(batches[i%len(batches)])); err != nil {
					b.Fatal(err)
				}
			}
			took[on] += time.Since(start)
		}
		if n == 0 {
			continue // the slowest requests of the first round are all held: it is slower
		}
		ratios = append(ratios, float64(took[true])/float64(took[false]))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "on/off")
	if got := exporters[true].published(b, "tokenpulse_tokens_total"); got < float64(2*b.N*turns*spans*tokensPerRequest) {
		b.Fatalf("%v tokens published", got)
	}
}
