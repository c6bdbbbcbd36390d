package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/play"
	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/synthetic"
)

// recordedBegin is when streams written to a file start, so that equal seeds
// write equal files.
var recordedBegin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// defaultModels differ in speed, so that a demo has something to tell apart.
var defaultModels = []string{"llama-3.3-70b=1", "gpt-oss-120b=1.6", "llama-3.1-8b=3"}

type generate struct {
	target target
	config synthetic.Config
	models []string
	fast   bool
	output string
}

func newGenerateCommand() *cobra.Command {
	g := &generate{}
	command := &cobra.Command{
		Use:   "generate",
		Short: "Send synthetic streams with realistic times",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return g.run(command) },
	}
	g.target.addFlags(command)
	flags := command.Flags()
	c := &g.config
	flags.Float64Var(&c.Rate, "rate", 2, "requests that start each second, at random moments")
	flags.IntVar(&c.Concurrency, "concurrency", 0, "requests under way at any time, instead of a rate")
	flags.IntVar(&c.Requests, "requests", 0, "how many requests to send; 0: no limit")
	flags.DurationVar(&c.Duration, "duration", 0, "how long requests keep starting; those under way then finish; 0: no limit")
	flags.StringArrayVar(&g.models, "model", defaultModels, "model name, or name=speed where 2 is twice as fast as --prefill and --tpot say; repeatable")
	flags.StringVar(&c.Service, "service", "tokengen", "service.name")
	flags.StringVar(&c.Provider, "provider", "vllm", "gen_ai.provider.name")
	flags.Uint64Var(&c.Seed, "seed", 0, "makes the same streams again; 0: different ones every time")
	flags.DurationVar(&c.Prefill, "prefill", 300*time.Millisecond, "median prefill time of a prompt of median length")
	flags.DurationVar(&c.TPOT, "tpot", 25*time.Millisecond, "mean time of a decode step, which yields one token unless it is bundled")
	flags.Float64Var(&c.CancelRatio, "cancel-ratio", 0.03, "share of requests that the client cancels")
	flags.Float64Var(&c.ErrorRatio, "error-ratio", 0.02, "share of requests that fail")
	flags.Float64Var(&c.IncompleteRatio, "incomplete-ratio", 0, "share of requests whose end nobody tells: the receiver closes them when they have been silent for its idle_timeout")
	flags.Float64Var(&c.ReasoningRatio, "reasoning-ratio", 0.3, "share of requests that reason before they answer")
	flags.Float64Var(&c.ReasoningOnlyRatio, "reasoning-only-ratio", 0, "share of requests that reason and never answer")
	flags.Float64Var(&c.OneTokenRatio, "one-token-ratio", 0, "share of requests with an answer of one token")
	flags.Float64Var(&c.ToolCallRatio, "tool-call-ratio", 0.1, "share of requests with an answer that end in a tool call")
	flags.Float64Var(&c.StallRatio, "stall-ratio", 0.001, "share of decode steps that stall for half a second to two")
	flags.Float64Var(&c.BundleRatio, "bundle-ratio", 0.1, "share of decode steps that yield several tokens in one chunk")
	flags.BoolVar(&g.fast, "fast", false, "send as fast as the receiver takes it, with the times that real time would have")
	flags.StringVar(&g.output, "output", "", "write the events to this file instead of sending them (for replay)")
	command.MarkFlagsMutuallyExclusive("rate", "concurrency")
	command.MarkFlagsMutuallyExclusive("output", "transport")
	command.MarkFlagsMutuallyExclusive("output", "endpoint")
	return command
}

func (g *generate) run(command *cobra.Command) error {
	for _, text := range g.models {
		model, err := synthetic.ParseModel(text)
		if err != nil {
			return err
		}
		g.config.Models = append(g.config.Models, model)
	}
	if err := g.config.Validate(); err != nil {
		return err
	}
	for g.config.Seed == 0 {
		g.config.Seed = rand.Uint64()
	}
	if g.output != "" {
		return g.record(command)
	}
	g.config.Begin = time.Now().UnixNano()
	if g.fast {
		g.config.Begin -= int64(g.expectedLength())
	}
	return g.target.play(command, synthetic.New(g.config), !g.fast)
}

// expectedLength is how long the traffic would take in real time, as far as the
// flags tell: fast traffic is stamped so that it ends about now.
func (g *generate) expectedLength() time.Duration {
	switch {
	case g.config.Duration > 0:
		return g.config.Duration
	case g.config.Concurrency == 0:
		return time.Duration(float64(g.config.Requests) / g.config.Rate * float64(time.Second))
	default:
		return 0
	}
}

// record writes the events to a file.
func (g *generate) record(command *cobra.Command) error {
	if g.config.Requests == 0 && g.config.Duration == 0 {
		return errors.New("--output needs an end: give --requests or --duration")
	}
	file, err := os.Create(g.output)
	if err != nil {
		return err
	}
	g.config.Begin = recordedBegin.UnixNano()
	player := &play.Player{Sender: send.NewFile(file), Tally: &send.Tally{}, Live: true}
	return player.Play(command.Context(), synthetic.New(g.config))
}
