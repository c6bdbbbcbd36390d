// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"fmt"
	"testing"
	"time"
)

// What a request costs, beside others that are open.
func BenchmarkRequest(b *testing.B) {
	for _, open := range []int{0, 100, 1000, maxOpen - 1} {
		b.Run(fmt.Sprintf("open=%d", open), func(b *testing.B) {
			e, now := New(Settings{}), time.Hour
			var others []*Request
			for range open {
				others = append(others, e.Begin(now, 4000, true))
			}
			b.ReportAllocs()
			for b.Loop() {
				now += time.Millisecond
				if open > 0 { // each has a token now and then
					others[int(now/time.Millisecond)%open].Token(now)
				}
				r := e.Begin(now, 4000, true)
				r.Token(now + 1)
				r.Token(now + 2)
				r.End(now+3, Completed, Usage{Input: 1000})
			}
		})
	}
}
