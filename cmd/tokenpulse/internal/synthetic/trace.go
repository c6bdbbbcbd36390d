// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"iter"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// Arrival is a request of a trace.
type Arrival struct {
	// At is when it starts, as an offset from Config.Begin.
	At time.Duration
	// Input and Output are tokens, at least 1.
	Input, Output int
}

// Trace yields a stream for each arrival, with its lengths. It succeeds, and has the times of an answer that nothing else
// delays: see latency.go. Of the config, it uses what is named there, the seed, and what describes streams.
func Trace(config Config, arrivals iter.Seq[Arrival]) iter.Seq[*stream.Stream] {
	return func(yield func(*stream.Stream) bool) {
		g := New(config)
		for a := range arrivals {
			if !yield(g.answer(&a)) {
				return
			}
		}
	}
}

// answer generates the stream of an arrival.
func (g *Generator) answer(a *Arrival) *stream.Stream {
	s, model := g.empty(a.At)
	scheduled := a.At + queueTime(g.random)
	s.Scheduled = g.at(scheduled)
	s.Chunks = g.chunks(scheduled+model.divide(prefillTime(g.random, g.config.Prefill, a.Input)), model, channelPlan{content: a.Output})
	s.End = &stream.End{
		Time: s.LastTime() + int64(finish), FinishReason: "stop",
		Usage: &stream.Usage{InputTokens: new(uint64(a.Input)), OutputTokens: new(uint64(a.Output))},
	}
	return s
}
