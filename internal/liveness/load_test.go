// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"math"
	"math/rand/v2"

	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

// arrival is a simulated request.
type arrival struct {
	at       float64
	prompt   float64 // tokens
	output   float64
	bytes    int64
	cached   float64 // share of the prompt
	witness  bool
	patience float64 // seconds until the client gives up; 0: never
}

// load is a day of an engine: episodes of different services, rates and lengths, and bursts of long prompts.
type load struct {
	*rand.Rand
	services simulated.Services
	m        *machine
	// of the day
	hit           float64
	silent        float64 // share of requests that are no witnesses
	impatient     float64
	patience      float64
	burstEvery    float64
	bytesPerToken float64
	shares        []float64 // of the engine's capacity, of which an episode has one
	// of the episode
	until, scale, code float64
	rate               float64
	at                 float64
	cursor             [2]int
	left               [2]int
	next               [2]float64
	burst              float64
	pending            []arrival // of a burst, by time
}

func newLoad(services simulated.Services, r *rand.Rand, m *machine) *load {
	l := &load{Rand: r, services: services, m: m}
	l.hit = []float64{0, 0, 0.5, 0.95}[r.IntN(4)]
	l.silent = []float64{0, 0.05, 0.3}[r.IntN(3)]
	l.impatient = []float64{0, 0.02, 0.1}[r.IntN(3)]
	l.patience = []float64{10, 30, 60}[r.IntN(3)]
	l.bytesPerToken = 3 + 2*r.Float64()
	l.burstEvery = []float64{math.Inf(1), 900, 3600, 4 * 3600}[r.IntN(4)]
	l.burst = l.ExpFloat64() * l.burstEvery
	l.shares = []float64{0, 0.002, 0.02, 0.1, 0.3, 0.6, 0.9, 1.2}
	l.episode(0)
	return l
}

func (l *load) episode(at float64) {
	l.at, l.until = at, at+60+l.ExpFloat64()*2400
	l.code = []float64{0, 0.1, 0.5, 1}[l.IntN(4)]
	l.scale = math.Exp(l.Float64()*2 - 0.7) // 0.5 to 3.7
	share := l.shares[l.IntN(len(l.shares))]
	if share > 1 {
		l.until = min(l.until, at+1200)
	}
	prompt, output := l.scale*(2048*l.code+1155*(1-l.code)), 28*l.code+211*(1-l.code)
	l.rate = share * l.m.capacity(prompt*(1-l.hit*0.75), output)
	for i, part := range [...]float64{1 - l.code, l.code} {
		l.next[i] = math.Inf(1)
		if l.rate*part > 0 {
			l.jump(i)
			l.next[i] = at + l.ExpFloat64()/(l.rate*part)
		}
	}
}

// jump goes to a random place of a recording, for a while.
func (l *load) jump(i int) {
	l.cursor[i] = l.IntN(len(l.services[i]) - 1)
	l.left[i] = 20 + l.IntN(400)
}

// take returns the next request.
func (l *load) take() arrival {
	for {
		if len(l.pending) > 0 && l.pending[0].at <= min(l.next[0], l.next[1], l.until) {
			a := l.pending[0]
			l.pending = l.pending[1:]
			return a
		}
		if l.burst <= min(l.next[0], l.next[1], l.until) {
			at := l.burst
			for range 1 + l.IntN(6) {
				size := min([]float64{60e3, 120e3, 250e3, 500e3}[l.IntN(4)], l.m.context)
				at += l.Float64() * 2
				l.pending = append(l.pending, l.request(at, size, 100))
			}
			l.burst = at + 10 + l.ExpFloat64()*l.burstEvery
			continue
		}
		i := 0
		if l.next[1] < l.next[0] {
			i = 1
		}
		if l.next[i] > l.until {
			l.episode(l.until)
			continue
		}
		s := l.services[i]
		r := s[l.cursor[i]]
		a := l.request(l.next[i], math.Max(8, r.Prompt*l.scale*(0.7+0.7*l.Float64())), max(1, r.Output))
		if l.left[i]--; l.left[i] < 0 || l.cursor[i]+1 >= len(s) {
			l.jump(i)
		}
		l.cursor[i]++
		// The recording's own rhythm, at the rate of the episode.
		recordedRate := float64(len(s)) / s[len(s)-1].At
		part := l.code
		if i == 0 {
			part = 1 - l.code
		}
		l.next[i] += (s[l.cursor[i]].At - s[l.cursor[i]-1].At) * recordedRate / (l.rate * part)
		return a
	}
}

func (l *load) request(at, prompt, output float64) arrival {
	a := arrival{at: at, prompt: math.Floor(min(prompt, l.m.context)), output: output, witness: l.Float64() >= l.silent}
	a.bytes = int64(300 + a.prompt*l.bytesPerToken*math.Exp(0.2*l.NormFloat64()))
	if l.Float64() < l.hit {
		a.cached = 0.5 + 0.49*l.Float64()
	}
	if l.Float64() < l.impatient {
		a.patience = max(l.patience, 4*l.m.cost(0, a.prompt)) // of a client that has seen an answer
	}
	return a
}
