// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkTrackerRecord records requests with verdicts of two SLOs that have objectives.
// 4,000 series is the limit with the default max_series.
func BenchmarkTrackerRecord(b *testing.B) {
	for _, series := range []int{1, 4000} {
		b.Run(fmt.Sprintf("%d series", series), func(b *testing.B) {
			tracker := newTracker(func(o *TrackerOptions) {
				o.Objectives = []Objective{{SLO: "A", Objective: 0.95, Window: month}, {SLO: "B", Objective: 0.9, Window: month}}
				o.MaxSeries = series
			})
			keys := make([][]byte, series)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "\x04chat\x04vllm\x0cmodel-%06d\x06server", i)
			}
			set := verdicts("gA", "bB")
			record := func(i int) {
				tracker.Record(keys[i%series], set, begin.Add(time.Duration(i)*time.Millisecond))
			}
			for i := range keys {
				record(i) // creates the budgets
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				record(series + i)
			}
			b.StopTimer()
			var counted uint64
			tracker.Visit(begin.Add(time.Duration(series+b.N)*time.Millisecond), func(of *Budgets) {
				counted += of.Each[0].Recent.Budget.Good
			})
			if want := uint64(series + b.N); counted != want {
				b.Fatalf("%d of %d requests counted", counted, want)
			}
		})
	}
}
