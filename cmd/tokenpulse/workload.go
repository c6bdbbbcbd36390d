// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arrivals"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/files"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/workload"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

type workloadWriter struct {
	source source
	output output
}

func newWorkloadCommand() *cobra.Command {
	w := &workloadWriter{}
	command := &cobra.Command{
		Use:   "workload FILE...",
		Short: "Write when requests arrived and how long they were, for a benchmark to replay",
		Long: `Write when requests arrived and how long their prompts and answers were, as a trace in Mooncake's format: AIPerf, SGLang's
benchmark and tokenpulse replay can replay it. It has no text, and no prompt of it shares a prefix with another one.

` + filesHelp,
		Example: `  tokenpulse workload spans/ -o trace.jsonl
  tokenpulse replay trace.jsonl --speed real`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return w.run(command, args) },
	}
	w.source.addFlags(command)
	w.output.addFlag(command, "the trace")
	return command
}

func (w *workloadWriter) run(command *cobra.Command, paths []string) error {
	list, read, err := w.source.arrivals(command, paths, "")
	if err != nil {
		return err
	}
	all, vantage := list.Shown()
	trace := workload.New(all)
	if read.Partial {
		fmt.Fprintln(command.ErrOrStderr(), "PART of the files: reading was interrupted.")
	}
	describe(command.ErrOrStderr(), trace, list, vantage)
	if len(trace.Requests) == 0 {
		return errors.New("no request has reported tokens of its prompt and its answer, so that there is no workload")
	}
	if err := w.output.write(command, trace.Write); err != nil {
		return err
	}
	if read.Partial {
		return verdict(exitInterrupted)
	}
	return nil
}

// arrivals returns the requests of files, with their verdicts of an SLO.
func (s *source) arrivals(command *cobra.Command, paths []string, slo string) (*arrivals.List, files.Result, error) {
	settings, err := s.settings(command.Context())
	if err != nil {
		return nil, files.Result{}, err
	}
	list := arrivals.New(slo)
	_, read, err := s.read(command, paths, &pipeline.Settings{Latency: settings.Latency, SLI: settings.SLI, Watch: list.Add})
	if err == nil && list.Dropped > 0 {
		err = fmt.Errorf("the files have more than %d requests; split them", arrivals.MaxRequests)
	}
	return list, read, err
}

// describe says what the trace has, and what it has not.
func describe(out io.Writer, t *workload.Trace, list *arrivals.List, vantage timeline.Vantage) {
	fmt.Fprintf(out, "%d requests in %v", len(t.Requests), t.Duration().Round(time.Second))
	if name := vantage.String(); name != "" {
		fmt.Fprintf(out, ", seen by the %s", name)
	}
	fmt.Fprintln(out)
	for _, left := range [...]struct {
		n   int
		why string
	}{
		{list.Others(), "of other vantages, which see the same requests"},
		{t.LeftOut[workload.Unsized], "without reported tokens of prompt and answer, such as refused ones"},
		{t.LeftOut[workload.Mistaken], "that failed by a mistake of the client"},
		{t.LeftOut[workload.TooLong], "with more tokens than can be replayed"},
		{list.Sampled, "that are a sample of those that were counted"},
		{list.Undated, "without a start"},
	} {
		if left.n > 0 {
			fmt.Fprintf(out, "left out: %d requests %s\n", left.n, left.why)
		}
	}
	if t.Cached > 0 {
		fmt.Fprintf(out, "%.0f%% of the prompt tokens were cached. In a replay, none are: no prompt of the trace shares a prefix with another one.\n",
			100*float64(t.Cached)/float64(t.Input))
	}
}
