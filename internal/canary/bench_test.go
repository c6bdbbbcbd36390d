// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// BenchmarkPair_Window measures all calls for a window of 200 requests of ten replicas, but for
// Answer.
func BenchmarkPair_Window(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			p := NewPair(k.settings, epoch)
			now := epoch
			var values sketch.Sketch
			for b.Loop() {
				for i := range 200 {
					values.Reset()
					values.Add(1+float64(i*i%67)/20, 1)
					c := Counts{Requests: 1, Eligible: 1}
					if i%20 == 0 {
						c.Bad = 1
					}
					p.Add(now, now, tick*time.Second, Arm(i%2), names[i%10], c, &values)
				}
				now = now.Add(tick * time.Second)
				p.Advance(now)
			}
		})
	}
}

var names = func() (n [2 * maxReplicas]string) {
	for i := range n {
		n[i] = fmt.Sprintf("pod-%d", i)
	}
	return n
}()

func BenchmarkPair_Answer(b *testing.B) {
	f := usual()
	p := f.pair(unchanged)
	for b.Loop() {
		p.Answer(Question{Alpha: 0.05, Tolerance: 0.5, ExpectedShare: 0.2})
	}
}

// BenchmarkPair_Memory reports the memory of a pair with 5 replicas in each arm and 20 requests/s,
// and of one in which every list is full.
func BenchmarkPair_Memory(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) { reportMemory(b, func() *Pair { return steady(k) }) })
		b.Run("full, "+k.name, func(b *testing.B) { reportMemory(b, func() *Pair { return full(k.settings) }) })
	}
}

func reportMemory(b *testing.B, build func() *Pair) {
	b.Helper()
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := inUse()
		p := build()
		b.ReportMetric(float64(inUse()-before), "B/pair")
		b.ReportMetric(float64(len(p.AppendBinary(nil))), "stored-B/pair")
	}
}

// steady returns a pair after half an hour of simulated traffic.
func steady(k kind) *Pair {
	e := k.worse(situations[0], 0)
	e.hours = 0.5
	return e.run(1, never).pair
}

// full returns a pair in which every list has as many entries as it can.
func full(s Settings) *Pair {
	p := NewPair(s, epoch)
	var values sketch.Sketch
	for i := range maxBuckets {
		values.Add(math.Exp2((float64(i)+0.5)/64), 1)
	}
	for now := epoch; now.Before(epoch.Add(20 * time.Minute)); now = now.Add(tick * time.Second) {
		for i, name := range names {
			for _, length := range []time.Duration{tick * time.Second, time.Minute} {
				p.Add(now, now, length, Arm(i%2), name, Counts{Requests: 1000, Eligible: 1000, Bad: 100}, &values)
			}
		}
	}
	return p
}
