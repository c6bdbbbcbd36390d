// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"
	"time"
)

// What a slot and an answer cost, with slots in all bins.
func BenchmarkLimit(b *testing.B) {
	f := newFeeder(0.99)
	for range 10 {
		for requests := range uint64(1000) {
			f.serve(1, requests, requests/400)
		}
	}
	b.Run("slot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.serve(1, 300, 0)
		}
	})
	b.Run("answer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Answer(f.at)
		}
	})
}

// What a request costs, on one of 100 replicas.
func BenchmarkRecord(b *testing.B) {
	s := newService()
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("replica ", i))
	}
	b.ReportAllocs()
	at, key := s.start, []byte("m")
	r := Request{Vantage: "engine", Sized: true, Output: 100, Prompt: 1000, Verdicts: [MaxObjectives]Verdict{Good}}
	for i := 0; b.Loop(); i++ {
		at = at.Add(10 * time.Millisecond)
		r.Replica, r.Start, r.End = names[i%len(names)], at, at.Add(2*time.Second)
		s.Record(key, &r, r.End)
	}
}
