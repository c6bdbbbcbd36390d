// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkMemory reports what 200 busy series take after a day and after a week: 3 requests per second
// together, each of 200 tokens.
func BenchmarkMemory(b *testing.B) {
	for name, length := range map[string]time.Duration{"day": 24 * time.Hour, "week": 7 * 24 * time.Hour} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				benchmarkMemory(b, length)
			}
		})
	}
}

func benchmarkMemory(b *testing.B, length time.Duration) {
	b.Helper()
	w := newWorld(b, 1<<30)
	at := 0
	for end := w.now.Add(length); w.now.Before(end); w.now = w.now.Add(20 * time.Second) {
		for range 60 {
			w.success(fmt.Sprint("model-", at%200))
			at++
		}
		w.maintain()
	}
	w.engine.Fold(w.now)
	used, _ := w.store.Memory()
	b.ReportMetric(float64(used)/(1<<20), "MiB")
	view := w.store.View(w.now.Add(-length), forever)
	start := time.Now()
	sum := new(Sum)
	for slot := range view.Slots() {
		slot.AddTo(func(Key) *Sum { return sum }, &Want{Quantities: 1<<32 - 1})
	}
	b.ReportMetric(time.Since(start).Seconds(), "s/query")
	if float64(sum.Requests[0]) < 2.7*length.Seconds() {
		b.Fatalf("%d requests in the view", sum.Requests[0])
	}
}
