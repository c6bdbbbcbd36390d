// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Generator generates streams.
type Generator struct {
	config   Config
	random   *rand.Rand
	arrivals arrivals
	resource *stream.Resource
	queue    *queue // or nil
}

// New returns a generator for a valid config.
func New(config Config) *Generator {
	random := rand.New(rand.NewPCG(config.Seed, 0))
	g := &Generator{
		config:   config,
		random:   random,
		arrivals: newArrivals(config, random),
		resource: &stream.Resource{Attributes: stream.Attributes{names.ServiceName: config.Service}},
	}
	if config.QueueLimit > 0 {
		g.queue = newQueue(config)
	}
	return g
}

// Streams yields the streams in the order of their starts.
func (g *Generator) Streams(yield func(*stream.Stream) bool) {
	if g.config.Engines > 0 {
		newReplicas(g).streams(yield)
		return
	}
	for start := range g.starts {
		s := g.stream(start)
		if g.queue != nil {
			g.queue.ended(time.Duration(s.LastTime() - g.config.Begin))
		}
		g.arrivals.ended(time.Duration(s.LastTime() - g.config.Begin))
		if !yield(s) {
			return
		}
	}
}

// starts yields when streams start, as offsets from Config.Begin.
func (g *Generator) starts(yield func(time.Duration) bool) {
	for count := 0; g.config.Requests == 0 || count < g.config.Requests; count++ {
		start := g.arrivals.next()
		if g.config.Duration > 0 && start >= g.config.Duration || !yield(start) {
			return
		}
	}
}

// stream generates one stream that starts at an offset from Config.Begin.
func (g *Generator) stream(start time.Duration) *stream.Stream {
	s, r := g.request(start)
	scheduled := start + queueTime(g.random)
	if g.queue != nil {
		free, ok := g.queue.enter(start)
		if !ok {
			refuse(s)
			return s
		}
		scheduled = max(scheduled, free)
	}
	s.Scheduled = g.at(scheduled)
	first := scheduled + r.model.divide(prefillTime(g.random, g.config.Prefill, r.input))

	plan := g.plan(r.output)
	s.Chunks = g.chunks(first, r.model, plan)
	g.finish(s, r, plan, g.cachedInput(r.input))
	g.cutOff(s)
	return s
}

// request is what is asked of a model.
type request struct {
	model         Model
	input, output int // tokens
}

// request generates a stream without its times.
func (g *Generator) request(start time.Duration) (*stream.Stream, request) {
	s, model := g.empty(start)
	r := request{
		model:  model,
		input:  tokenCount(g.random, inputMedian, inputSigma, inputMax),
		output: tokenCount(g.random, outputMedian, outputSigma, outputMax),
	}
	for _, a := range g.config.Attributes {
		s.Attributes[a.Key] = a.Values[g.random.IntN(len(a.Values))]
	}
	return s, r
}

// empty generates a stream of which only the start is known.
func (g *Generator) empty(start time.Duration) (*stream.Stream, Model) {
	random := g.random
	model := g.config.Models[random.IntN(len(g.config.Models))]
	return &stream.Stream{
		ID:       fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64()),
		Resource: g.resource,
		Attributes: stream.Attributes{
			names.GenAIOperationName: "chat",
			names.GenAIProviderName:  g.config.Provider,
			names.GenAIRequestModel:  model.Name,
		},
		Start: g.at(start),
	}, model
}

// finish ends a stream whose chunks are complete. cached is the number of input tokens from the prefix cache.
func (g *Generator) finish(s *stream.Stream, r request, plan channelPlan, cached int) {
	s.End = &stream.End{
		Time:         s.Chunks[len(s.Chunks)-1].Time + int64(finish),
		FinishReason: plan.finishReason(),
		Usage: &stream.Usage{
			InputTokens: new(uint64(r.input)), OutputTokens: new(uint64(plan.total())),
			ReasoningTokens: new(uint64(plan.reasoning)), CachedInputTokens: new(uint64(cached)),
			CacheWriteInputTokens: new(uint64(r.input*3/4 - cached)), // of the prefix, if the cache does not have it
		},
	}
}

// refuse ends a stream that finds the queue full.
func refuse(s *stream.Stream) {
	s.End = &stream.End{Time: s.Start + int64(finish), Error: "queue full"}
}

// at returns the Unix time at an offset from Config.Begin. Offsets are truncated to
// microseconds, which are smaller on the wire.
func (g *Generator) at(offset time.Duration) int64 {
	return g.config.Begin + int64(offset.Truncate(time.Microsecond))
}

func (m Model) divide(d time.Duration) time.Duration {
	return time.Duration(float64(d) / m.Speed)
}

// cachedInput returns how many input tokens came from the prefix cache: 75% in a third
// of the requests, none in the others.
func (g *Generator) cachedInput(input int) int {
	if g.random.IntN(3) > 0 {
		return 0
	}
	return input * 3 / 4
}

// plan splits the output tokens of a stream between reasoning, content and a tool call,
// which is the last quarter of the answer. One-token answers ignore output.
func (g *Generator) plan(output int) channelPlan {
	p := channelPlan{content: output}
	reasons := g.config.ReasoningRatio
	reasonsOnly := reasons + g.config.ReasoningOnlyRatio
	oneToken := reasonsOnly + g.config.OneTokenRatio
	switch dice := g.random.Float64(); {
	case dice < reasons:
		share := 0.3 + 0.5*g.random.Float64()
		p.reasoning = int(share * float64(output))
		p.content -= p.reasoning
	case dice < reasonsOnly:
		p = channelPlan{reasoning: output}
	case dice < oneToken:
		p = channelPlan{content: 1}
	}
	if g.random.Float64() < g.config.ToolCallRatio {
		p.toolCall = (p.content + 3) / 4
		p.content -= p.toolCall
	}
	return p
}

func (g *Generator) chunks(first time.Duration, model Model, p channelPlan) []stream.Chunk {
	chunks := make([]stream.Chunk, 0, p.total())
	at := first
	for sent := 0; sent < p.total(); {
		channel, left := p.at(sent)
		tokens := 1
		if g.random.Float64() < g.config.BundleRatio {
			tokens = min(bundleSize(g.random), left)
		}
		if len(chunks) > 0 {
			at += model.divide(stepTime(g.random, g.config.TPOT))
			if g.random.Float64() < g.config.StallRatio {
				at += stallTime(g.random)
			}
		}
		chunks = append(chunks, stream.Chunk{
			Time: g.at(at), Tokens: uint32(tokens), Channel: channel,
			Sequence: uint64(len(chunks)), Sequenced: true,
		})
		sent += tokens
	}
	return chunks
}

// cutOff cuts some streams at a random chunk: cancelled, failed (half of them before
// the first token) and incomplete ones. They report no usage, because servers send
// usage with the last frame. Incomplete streams have no end.
func (g *Generator) cutOff(s *stream.Stream) {
	cancelled := g.config.CancelRatio
	failed := cancelled + g.config.ErrorRatio
	incomplete := failed + g.config.IncompleteRatio
	dice := g.random.Float64()
	kept := g.random.IntN(len(s.Chunks))
	early := g.random.IntN(2) == 0
	switch {
	case dice < cancelled:
		s.Chunks = s.Chunks[:kept]
		s.End = &stream.End{Cancelled: true}
	case dice < failed:
		if early {
			kept = 0
		}
		s.Chunks = s.Chunks[:kept]
		s.End = &stream.End{Error: "upstream connection reset"}
	case dice < incomplete:
		s.Chunks = s.Chunks[:kept]
		s.End = nil
		return
	default:
		return
	}
	s.End.Time = s.LastTime() + int64(finish)
}
