// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/play"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/synthetic"
)

// recordingBegin is fixed, so that equal seeds write equal files.
var recordingBegin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// defaultModels differ in speed, so that their latencies differ in a demo.
var defaultModels = []string{"llama-3.3-70b=1", "gpt-oss-120b=1.6", "llama-3.1-8b=3"}

type generate struct {
	target target
	config synthetic.Config
	models []string
	pairs  []string // --attribute
	fast   bool
	output string
}

func newGenerateCommand() *cobra.Command {
	g := &generate{}
	command := &cobra.Command{
		Use:   "generate",
		Short: "Send synthetic streams with realistic latencies",
		Example: `  tokenpulse generate
  tokenpulse generate --rate 10 --model llama-3.3-70b --attribute tenant.id=a --attribute tenant.id=b
  tokenpulse generate --engines 2 --rate 1 --peak-rate 5 --fast --duration 11h`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return g.run(command) },
	}
	g.target.addFlags(command)
	flags := command.Flags()
	c := &g.config
	flags.Float64Var(&c.Rate, "rate", 2, "mean `number` of requests started per second, at random times")
	flags.Float64Var(&c.PeakRate, "peak-rate", 0, "the rate rises from --rate to this `number` and falls again, once per --period; 0 means a constant rate")
	flags.DurationVar(&c.Period, "period", 4*time.Hour, "see --peak-rate")
	flags.IntVar(&c.Engines, "engines", 0, "`number` of simulated engines that serve one model and have a known limit, which is shown; 0 means that times do not depend on load")
	flags.IntVar(&c.Concurrency, "concurrency", 0, "`number` of requests in flight at any time; replaces --rate, unless --queue-limit is set")
	flags.IntVar(&c.QueueLimit, "queue-limit", 0, "requests of --rate queue for one of --concurrency slots (default 8); a request that finds this `number` waiting fails; 0 means no queue")
	flags.IntVar(&c.Requests, "requests", 0, "`number` of requests to send; 0 means no limit")
	flags.DurationVar(&c.Duration, "duration", 0, "time during which requests start; requests in flight then finish; 0 means no limit")
	flags.StringArrayVar(&g.models, "model", defaultModels, "model as `name[=speed]`; speed 2 halves --prefill and --tpot; repeatable")
	flags.StringArrayVar(&g.pairs, "attribute", nil, "attribute of the streams as `key=value`; repeatable; each stream has one of the values of a repeated key")
	flags.StringVar(&c.Service, "service", "tokenpulse", "service.name of the streams")
	flags.StringVar(&c.Provider, "provider", "vllm", "gen_ai.provider.name of the streams")
	flags.Uint64Var(&c.Seed, "seed", 0, "random seed; equal seeds and flags give equal streams; 0 picks a seed")
	flags.DurationVar(&c.Prefill, "prefill", synthetic.DefaultPrefill, "median prefill time of a prompt of median length (400 tokens)")
	flags.DurationVar(&c.TPOT, "tpot", synthetic.DefaultTPOT, "mean time of a decode step; a step yields one token, or several with --bundle-ratio")
	flags.Float64Var(&c.CancelRatio, "cancel-ratio", 0.03, "`share` of requests that the client cancels, from 0 to 1")
	flags.Float64Var(&c.ErrorRatio, "error-ratio", 0.02, "`share` of requests that fail")
	flags.Float64Var(&c.IncompleteRatio, "incomplete-ratio", 0, "`share` of requests without an end event; the receiver ends them after its idle_timeout")
	flags.Float64Var(&c.ReasoningRatio, "reasoning-ratio", 0.3, "`share` of requests that reason before the answer")
	flags.Float64Var(&c.ReasoningOnlyRatio, "reasoning-only-ratio", 0, "`share` of requests that reason and have no answer")
	flags.Float64Var(&c.OneTokenRatio, "one-token-ratio", 0, "`share` of requests whose answer is one token")
	flags.Float64Var(&c.ToolCallRatio, "tool-call-ratio", 0.1, "`share` of answers that end in a tool call")
	flags.Float64Var(&c.StallRatio, "stall-ratio", 0.001, "`share` of decode steps that stall for 0.5s to 2s")
	flags.Float64Var(&c.BundleRatio, "bundle-ratio", 0.1, "`share` of decode steps that yield 2 to 8 tokens in one chunk")
	flags.BoolVar(&g.fast, "fast", false, "send as fast as the receiver accepts; timestamps keep the planned intervals and end about now")
	flags.StringVar(&g.output, "output", "", "write the events to this `file` instead of sending them; tokenpulse replay can send it")
	command.MarkFlagsMutuallyExclusive("output", "transport")
	command.MarkFlagsMutuallyExclusive("output", "endpoint")
	// Engines decide all times and which requests fail.
	for _, flag := range []string{
		"concurrency", "queue-limit", "prefill", "tpot", "cancel-ratio", "error-ratio", "incomplete-ratio", "stall-ratio", "bundle-ratio",
	} {
		command.MarkFlagsMutuallyExclusive("engines", flag)
	}
	return command
}

func (g *generate) run(command *cobra.Command) error {
	if g.config.Engines > 0 && !command.Flags().Changed("model") {
		g.models = defaultModels[:1]
	}
	for _, text := range g.models {
		model, err := synthetic.ParseModel(text)
		if err != nil {
			return usageError{err}
		}
		g.config.Models = append(g.config.Models, model)
	}
	for _, pair := range g.pairs {
		if err := g.config.AddAttribute(pair); err != nil {
			return usageError{err}
		}
	}
	if flags := command.Flags(); g.config.QueueLimit == 0 && (flags.Changed("rate") || flags.Changed("peak-rate")) && flags.Changed("concurrency") {
		return usagef("--rate and --concurrency exclude each other; set one of them, or --queue-limit too")
	}
	if err := g.config.Validate(); err != nil {
		return usageError{err}
	}
	for g.config.Seed == 0 {
		g.config.Seed = rand.Uint64()
	}
	if g.config.Engines > 0 {
		printLimits(command.ErrOrStderr(), g.config)
	}
	if g.output != "" {
		return g.record(command)
	}
	g.config.Begin = time.Now().UnixNano()
	if g.fast {
		g.config.Begin -= int64(g.plannedDuration())
	}
	return g.target.play(command, synthetic.New(g.config).Streams, !g.fast)
}

// plannedDuration returns the expected duration of the traffic in real time, or 0 if the
// flags do not determine it. Timestamps of fast traffic go back by it.
func (g *generate) plannedDuration() time.Duration {
	switch {
	case g.config.Duration > 0:
		return g.config.Duration
	case !g.config.Closed():
		return time.Duration(float64(g.config.Requests) / g.config.MeanRate() * float64(time.Second))
	default:
		return 0
	}
}

// record writes the events to the file of --output.
func (g *generate) record(command *cobra.Command) error {
	if g.config.Requests == 0 && g.config.Duration == 0 {
		return usagef("--output %s needs a limit; set --requests or --duration", g.output)
	}
	file, err := os.Create(g.output)
	if err != nil {
		return err
	}
	g.config.Begin = recordingBegin.UnixNano()
	player := &play.Player{Sender: send.NewFile(file), Stats: &send.Stats{}, Live: true}
	return player.Play(command.Context(), synthetic.New(g.config).Streams)
}

// printLimits says what load the engines can take.
func printLimits(out io.Writer, config synthetic.Config) {
	fmt.Fprintf(out, "Each of the engines keeps TTFT within %v and TPOT within %v, at a constant load up to\n", synthetic.LimitTTFT, synthetic.LimitTPOT)
	for _, objective := range []float64{0.9, 0.95, 0.99} {
		load := "unknown"
		if limit, ok := config.Limit(objective); ok {
			load = fmt.Sprintf("%.2f requests/s, %.0f output tokens/s, %.0f prompt tokens/s not cached", limit.Requests, limit.Output, limit.Prompt)
		}
		fmt.Fprintf(out, "  for %g%% of requests: %s\n", 100*objective, load)
	}
}
