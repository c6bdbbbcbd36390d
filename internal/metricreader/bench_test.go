// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/metricreader"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// BenchmarkRead reads flushes of 200 series. All had a request since the flush before, or
// none, as with cumulative temporality.
func BenchmarkRead(b *testing.B) {
	for _, idle := range []bool{false, true} {
		b.Run(fmt.Sprint("idle=", idle), func(b *testing.B) {
			w := &world{random: rand.New(rand.NewPCG(1, 2)), clock: time.Now(), read: newEngine()}
			w.reader = metricreader.New(metricreader.Options{Dimensions: dimensions, MaxStreams: 1_000_000}, w.clock)
			p := &producer{w: w, config: publish.NewDefaultConfig()}
			p.config.Shared.Series.Dimensions = dimensions
			p.restart()
			points := 0
			flush := func(requests int) {
				for i := range requests {
					r := w.randomRequest()
					r.Dimensions[1] = fmt.Sprint("model-", i)
					p.Keeper.Add(&r)
				}
				w.clock = w.clock.Add(time.Second)
				p.flush()
				points = p.received.DataPointCount()
			}
			flush(2000)
			w.reader.Read(p.received, w.clock, func(i *series.Increment) series.Recorded { return w.read.Increase(i) })
			b.ReportAllocs()
			read := 0
			for b.Loop() {
				b.StopTimer()
				if idle {
					flush(0)
				} else {
					flush(2000)
				}
				b.StartTimer()
				tally := w.reader.Read(p.received, w.clock, func(i *series.Increment) series.Recorded { return w.read.Increase(i) })
				read += int(tally.Points)
				if tally.Points == 0 {
					b.Fatal("no point was read")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(read), "ns/point")
			b.ReportMetric(float64(points), "points")
		})
	}
}
