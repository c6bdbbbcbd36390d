// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

const tokensPerRequest = 500

// typical returns a request with every quantity and count: 500 tokens about 20 ms apart,
// after about one second of prefill.
func typical(random *rand.Rand, model string) *Contribution {
	lognormal := func(median, sigma float64) float64 { return median * math.Exp(sigma*random.NormFloat64()) }
	gaps := make([]float64, tokensPerRequest-1)
	total := 0.0
	for i := range gaps {
		gaps[i] = lognormal(0.02, 0.3)
		total += gaps[i]
	}
	r := &Contribution{Dimensions: []string{model}, Vantage: "server"}
	first := lognormal(1, 0.5)
	r.SetValue(numbers.TimeToFirstToken, first)
	r.SetValue(numbers.TimeToFirstOutputToken, first)
	r.SetValue(numbers.TimePerOutputToken, total/float64(len(gaps)))
	r.SetValue(numbers.RequestDuration, first+total)
	r.SetValue(numbers.QueueDuration, first*0.1)
	r.SetValue(numbers.PrefillDuration, first*0.9)
	r.SetValue(numbers.DecodeDuration, total)
	r.SetValue(numbers.OutputTokenRate, float64(len(gaps))/total)
	*r.Distribution(numbers.InterTokenLatency) = distribution(gaps...)
	*r.Distribution(numbers.InterChunkLatency) = distribution(gaps...)
	r.SetValue(numbers.InputTokens, 1000)
	r.SetValue(numbers.OutputTokens, tokensPerRequest)
	r.SetValue(numbers.StallCount, 0)
	r.SetValue(numbers.StallDuration, 0)
	r.TraceID[0], r.SpanID[0] = 1, 1
	return r
}

func typicals(n int) (all []*Contribution) {
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		all = append(all, typical(random, "meta-llama/Llama-3.3-70B-Instruct"))
	}
	return all
}

func BenchmarkRecord(b *testing.B) {
	e := newTestEngine(nil)
	requests := typicals(64)
	b.ReportAllocs()
	for i := range b.N {
		r := requests[i%len(requests)]
		r.Arrival = e.at(time.Duration(i) * time.Millisecond)
		e.Record(r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tokensPerRequest, "ns/token")
	var recorded uint64
	e.Collect(e.at(0), func(s *Snapshot) { recorded += s.Outcomes[Success].Requests })
	if recorded != uint64(b.N) {
		b.Fatalf("%d of %d requests recorded", recorded, b.N)
	}
}

// byDefault has the metrics and the window that the exporter has by default.
func byDefault(o *Options) { o.Metrics, o.Windows = nil, []time.Duration{5 * time.Minute} }

// BenchmarkBytesPerSeries reports the memory of a series with a full window: 10 requests
// per second, each with every quantity.
func BenchmarkBytesPerSeries(b *testing.B) {
	const held, perSecond = 4, 10
	requests := typicals(997)
	for range b.N {
		before := heap()
		e := newTestEngine(byDefault)
		for i := range perSecond * 3600 {
			r := requests[i%len(requests)]
			r.Arrival = e.at(time.Duration(i) * time.Second / perSecond)
			for s := range held {
				r.Dimensions = []string{fmt.Sprint("model-", s)}
				e.Record(r)
			}
		}
		b.ReportMetric(float64(heap()-before)/held, "B/series")
		if e.Held() != held {
			b.Fatalf("%d of %d series held", e.Held(), held)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkCollect reads 100 series with full windows.
func BenchmarkCollect(b *testing.B) {
	const held = 100
	e := newTestEngine(nil)
	for i, r := range typicals(held * 100) {
		r.Arrival = e.at(time.Duration(i) * 360 * time.Millisecond)
		r.Dimensions = []string{fmt.Sprint("model-", i%held)}
		e.Record(r)
	}
	for b.Loop() {
		visited := 0
		e.Collect(e.at(time.Hour), func(*Snapshot) { visited++ })
		if visited != held {
			b.Fatalf("%d of %d series visited", visited, held)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/held, "ns/series")
}
