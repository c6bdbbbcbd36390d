package synthetic

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Generator makes streams, in the order in which they start.
type Generator struct {
	config   Config
	random   *rand.Rand
	arrivals arrivals
	resource *stream.Resource
	made     int
}

// New returns a generator of the traffic that the config describes, which must
// be valid.
func New(config Config) *Generator {
	random := rand.New(rand.NewPCG(config.Seed, 0))
	return &Generator{
		config:   config,
		random:   random,
		arrivals: newArrivals(config, random),
		resource: &stream.Resource{Attributes: stream.Attributes{names.ServiceName: config.Service}},
	}
}

// Next returns the next stream, or false when there are no more.
func (g *Generator) Next() (*stream.Stream, bool) {
	if g.config.Requests > 0 && g.made == g.config.Requests {
		return nil, false
	}
	start := g.arrivals.next()
	if g.config.Duration > 0 && start >= g.config.Duration {
		return nil, false
	}
	g.made++
	s := g.stream(start)
	g.arrivals.ended(time.Duration(s.LastTime() - g.config.Begin))
	return s, true
}

// stream makes one stream that starts so long after the beginning.
func (g *Generator) stream(start time.Duration) *stream.Stream {
	random := g.random
	model := g.config.Models[random.IntN(len(g.config.Models))]
	s := &stream.Stream{
		ID:       fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64()),
		Resource: g.resource,
		Attributes: stream.Attributes{
			names.GenAIOperationName: "chat",
			names.GenAIProviderName:  g.config.Provider,
			names.GenAIRequestModel:  model.Name,
		},
		Start: g.at(start),
	}
	input := tokenCount(random, inputMedian, inputSigma, inputMax)
	output := tokenCount(random, outputMedian, outputSigma, outputMax)
	scheduled := start + queueTime(random)
	s.Scheduled = g.at(scheduled)
	first := scheduled + model.divide(prefillTime(random, g.config.Prefill, input))

	channels := g.channels(output)
	s.Chunks = g.chunks(first, model, channels)
	s.End = &stream.End{
		Time:         s.Chunks[len(s.Chunks)-1].Time + int64(finish),
		FinishReason: channels.finishReason(),
		Usage: &stream.Usage{
			InputTokens: new(uint64(input)), OutputTokens: new(uint64(channels.total())),
			ReasoningTokens: new(uint64(channels.reasoning)), CachedInputTokens: new(uint64(g.cachedInput(input))),
		},
	}
	g.breakOff(s)
	return s
}

// at returns the Unix time of a moment after the beginning, in whole
// microseconds after it, which is what the wire carries cheapest.
func (g *Generator) at(offset time.Duration) int64 {
	return g.config.Begin + int64(offset.Truncate(time.Microsecond))
}

func (m Model) divide(d time.Duration) time.Duration {
	return time.Duration(float64(d) / m.Speed)
}

// cachedInput returns how many input tokens were in the prefix cache: most of
// them in every third request.
func (g *Generator) cachedInput(input int) int {
	if g.random.IntN(3) > 0 {
		return 0
	}
	return input * 3 / 4
}

// plan is how many tokens a stream has on each channel, in this order.
type plan struct {
	reasoning, content, toolCall int
}

// channels splits a stream's tokens between reasoning and answer, and gives a
// quarter of the answer, at its end, to a tool call. Some streams answer with one
// token, whatever output says, and some reason until their tokens are used up.
func (g *Generator) channels(output int) plan {
	p := plan{content: output}
	reasons := g.config.ReasoningRatio
	reasonsOnly := reasons + g.config.ReasoningOnlyRatio
	oneToken := reasonsOnly + g.config.OneTokenRatio
	switch dice := g.random.Float64(); {
	case dice < reasons:
		share := 0.3 + 0.5*g.random.Float64()
		p.reasoning = int(share * float64(output))
		p.content -= p.reasoning
	case dice < reasonsOnly:
		p = plan{reasoning: output}
	case dice < oneToken:
		p = plan{content: 1}
	}
	if g.random.Float64() < g.config.ToolCallRatio {
		p.toolCall = (p.content + 3) / 4
		p.content -= p.toolCall
	}
	return p
}

func (p plan) total() int { return p.reasoning + p.content + p.toolCall }

func (p plan) finishReason() string {
	switch {
	case p.toolCall > 0:
		return "tool_calls"
	case p.total() == outputMax, p.content == 0:
		return "length"
	default:
		return "stop"
	}
}

// at returns the channel of the n-th token and how many more of its channel
// follow, that one included.
func (p plan) at(n int) (timeline.Channel, int) {
	switch {
	case n < p.reasoning:
		return timeline.Reasoning, p.reasoning - n
	case n < p.reasoning+p.content:
		return timeline.Content, p.reasoning + p.content - n
	default:
		return timeline.ToolCall, p.total() - n
	}
}

func (g *Generator) chunks(first time.Duration, model Model, p plan) []stream.Chunk {
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

// breakOff lets some streams end before their time: at a random point, and half
// of the failures before the first token. Their usage is never told, as is
// usual where it comes with the last frame. Of an incomplete stream not even the
// end is told.
func (g *Generator) breakOff(s *stream.Stream) {
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
