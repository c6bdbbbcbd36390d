// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"math/rand/v2"

	"github.com/tokenpulse/tokenpulse/internal/batching"
	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

const longestPrompt = 15e3 // tokens

// traffic is what the requests of a seed are like.
type traffic struct {
	code                        float64 // share of requests
	promptScale, outputScale    float64
	hit                         float64 // share of requests whose prompt is partly cached
	promptMean, outputMean, ctx float64 // about
}

func newTraffic(r *rand.Rand) traffic {
	m := traffic{
		code:        []float64{0, 0, 0.1, 0.5, 1}[r.IntN(5)],
		promptScale: math.Exp(r.Float64()*1.6 - 0.8), outputScale: math.Exp(r.Float64()*1.8 - 0.6),
		hit: []float64{0, 0, 0.5, 0.9}[r.IntN(4)],
	}
	m.ctx = m.promptScale * (2048*m.code + 1155*(1-m.code))
	m.promptMean = m.ctx * (1 - 0.6*m.hit)
	m.outputMean = m.outputScale * (28*m.code + 211*(1-m.code))
	return m
}

// load draws requests from the recordings: each service keeps its own rhythm, and jumps to another place now and then.
type load struct {
	*rand.Rand
	services simulated.Services
	mix      traffic
	rate     func(at float64) float64 // requests per second
	cursor   [2]int
	left     [2]int
	next     [2]float64
	jumps    int // requests until a jump, at most
	// recordedRate is the mean rate of the recording, or with the flag even that of the place.
	recordedRate [2]float64
}

func newLoad(s simulated.Services, r *rand.Rand, m traffic, rate func(at float64) float64) *load {
	l := &load{Rand: r, services: s, mix: m, rate: rate, jumps: 400}
	for i := range l.next {
		l.jump(i)
		l.next[i] = math.Inf(1)
		if l.part(i) > 0 {
			l.next[i] = l.ExpFloat64() / (rate(0) * l.part(i))
		}
	}
	return l
}

// part is a service's share of the requests.
func (l *load) part(i int) float64 {
	if i == 1 {
		return l.mix.code
	}
	return 1 - l.mix.code
}

func (l *load) jump(i int) {
	s := l.services[i]
	l.cursor[i] = l.IntN(len(s) - 1)
	l.left[i] = 20 + l.IntN(l.jumps)
	l.recordedRate[i] = float64(len(s)) / s[len(s)-1].At
	if *even {
		end := min(l.cursor[i]+l.left[i], len(s)-1)
		l.recordedRate[i] = float64(end-l.cursor[i]) / max(1e-3, s[end].At-s[l.cursor[i]].At)
	}
}

func (l *load) take() *batching.Request {
	i := 0
	if l.next[1] < l.next[0] {
		i = 1
	}
	s := l.services[i]
	r := s[l.cursor[i]]
	q := &batching.Request{At: l.next[i], Context: math.Floor(min(longestPrompt, max(8, r.Prompt*l.mix.promptScale*(0.7+0.6*l.Float64()))))}
	q.Output = math.Ceil(max(1, r.Output*l.mix.outputScale*(0.7+0.6*l.Float64())))
	q.Prompt = q.Context
	if l.Float64() < l.mix.hit {
		q.Prompt = math.Ceil(q.Context * (1 - 0.3 - 0.6*l.Float64()))
	}
	if l.left[i]--; l.left[i] < 0 || l.cursor[i]+1 >= len(s) {
		l.jump(i)
	}
	l.cursor[i]++
	// The recording's own rhythm at the present rate.
	l.next[i] += max(1e-6, (s[l.cursor[i]].At-s[l.cursor[i]-1].At)*l.recordedRate[i]) / (max(1e-3, l.rate(q.At)) * l.part(i))
	return q
}

// newShape returns a rate over time, as a factor of the limit. Without a peak, it is between 0.9 and 1.6.
func newShape(r *rand.Rand, peak float64) (name string, shape func(at float64) float64) {
	if random := 0.9 + 0.7*r.Float64(); peak == 0 {
		peak = random
	}
	low := peak * (0.1 + 0.4*r.Float64())
	switch r.IntN(4) {
	case 0:
		phase := r.Float64() * 86400
		return "day", func(at float64) float64 {
			return low + (peak-low)*(0.5-0.5*math.Cos(2*math.Pi*(at+phase)/86400))
		}
	case 1:
		until, level := 0.0, 0.0
		return "episodes", func(at float64) float64 {
			for at >= until {
				until += 60 + r.ExpFloat64()*2400
				level = low + (peak-low)*r.Float64()
			}
			return level
		}
	case 2:
		every := 600 + 7200*r.Float64()
		next, until := r.ExpFloat64()*every, 0.0
		return "spikes", func(at float64) float64 {
			for at >= next {
				until = next + 60 + r.ExpFloat64()*400
				next = until + r.ExpFloat64()*every
			}
			if at < until {
				return peak
			}
			return low
		}
	default:
		x, last := r.NormFloat64(), 0.0
		hours := 1800 + 7200*r.Float64()
		return "wander", func(at float64) float64 {
			for at >= last+30 {
				a := math.Exp(-30 / hours)
				x = a*x + math.Sqrt(1-a*a)*r.NormFloat64()
				last += 30
			}
			return min(1.2*peak, peak*math.Exp(0.35*(x-1.3)))
		}
	}
}
