// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/synthetic"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/workload"
)

// Values of --speed.
const (
	speedReal = "real"
	speedMax  = "max"
)

type replay struct {
	target   target
	defaults recording.Defaults
	speed    string
}

func newReplayCommand() *cobra.Command {
	r := &replay{}
	command := &cobra.Command{
		Use:   "replay FILE",
		Short: "Send recorded streams or results of a benchmark, or synthetic streams of a recorded workload",
		Example: `  tokenpulse replay recording.jsonl
  tokenpulse replay profile_export.jsonl --speed real`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return r.run(command, args[0]) },
	}
	r.target.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&r.speed, "speed", speedMax, "max: as fast as the receiver accepts, with the recorded times; real: in real time, with all times shifted to start now")
	flags.StringVar(&r.defaults.Service, "service", "replay", "service.name for streams without one")
	flags.StringVar(&r.defaults.Model, "model", "recorded", "gen_ai.request.model for streams without one")
	flags.StringVar(&r.defaults.Provider, "provider", "", "gen_ai.provider.name for streams without one")
	return command
}

func (r *replay) run(command *cobra.Command, path string) error {
	if r.speed != speedMax && r.speed != speedReal {
		return usagef("--speed is %q; valid values: %s, %s", r.speed, speedMax, speedReal)
	}
	file, err := openfile.Open(command.Context(), path, nil)
	if err != nil {
		return err
	}
	defer file.Close()
	if prefix, _ := file.Peek(recording.DetectBytes); workload.Detect(prefix) {
		return r.trace(command, path, file)
	}
	streams, err := recording.Read(command.Context(), file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.defaults.Apply(streams)
	return r.target.play(command, slices.Values(streams), r.speed == speedReal)
}

// trace sends synthetic streams with the arrivals and lengths of a trace. They arrive until about now.
func (r *replay) trace(command *cobra.Command, path string, in io.Reader) error {
	trace, err := workload.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return r.target.play(command, synthetic.Trace(synthetic.Config{
		Seed: rand.Uint64(), Begin: time.Now().Add(-trace.Duration()).UnixNano(),
		Service: r.defaults.Service, Provider: r.defaults.Provider, Models: []synthetic.Model{{Name: r.defaults.Model, Speed: 1}},
		Prefill: synthetic.DefaultPrefill, TPOT: synthetic.DefaultTPOT,
	}, trace.Arrivals), r.speed == speedReal)
}
