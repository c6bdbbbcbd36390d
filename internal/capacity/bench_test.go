// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import "testing"

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
