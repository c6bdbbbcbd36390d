// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/files"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/waterfall"
	"github.com/tokenpulse/tokenpulse/internal/annotate"
)

type tracer struct{ source source }

func newTraceCommand() *cobra.Command {
	t := &tracer{}
	command := &cobra.Command{
		Use:   "trace ID FILE...",
		Short: "Draw one trace of files as text",
		Long: `Draw one trace of files as text: its spans over time, and of each request its phases, stalls and tokens.
ID is a trace or span ID in hexadecimal, or at least its first 6 digits. ` + "`tokenpulse slowest`" + ` lists IDs.

` + filesHelp,
		Example: `  tokenpulse trace 4bf92f spans/
  tokenpulse trace 00f067aa0ba902b7 spans.jsonl.zst --slos slos.yaml`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error { return t.run(command, args[0], args[1:]) },
	}
	t.source.addFlags(command)
	return command
}

// pipeColumns is the width of a picture that is written into a pipe or file.
const pipeColumns = 100

func (t *tracer) run(command *cobra.Command, text string, paths []string) error {
	id, err := waterfall.ParseID(text)
	if err != nil {
		return usageError{err}
	}
	settings, err := t.source.settings(command.Context())
	if err != nil {
		return err
	}
	settings.Latency.Timeline, settings.Latency.Join, settings.SLI.Series.Dimensions = annotate.TimelineKeep, true, nil
	trace, spans, err := t.find(command, waterfall.NewFinder(id), paths)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(command.Context())
	p, err := pipeline.New(ctx, pipeline.Settings{
		Latency: settings.Latency, SLI: settings.SLI, Rejudge: t.source.slos != "", Logger: warnings(command.ErrOrStderr()), Watch: trace.Watch,
	})
	if err != nil {
		return err
	}
	if err := errors.Join(p.Consume(ctx, spans), p.Close(ctx)); err != nil {
		return err
	}
	out := command.OutOrStdout()
	err = trace.Draw(out, cmp.Or(terminal.Width(out), pipeColumns))
	if err == nil && trace.Partial {
		err = verdict(exitInterrupted)
	}
	return err
}

// find returns the trace, and its spans for a pipeline. It reads the files a second time if the ID is that of a span.
func (t *tracer) find(command *cobra.Command, finder *waterfall.Finder, paths []string) (*waterfall.Trace, ptrace.Traces, error) {
	none := ptrace.Traces{}
	t.source.named = paths
	paths, err := openfile.Files(paths)
	if err != nil {
		return nil, none, usageError{err}
	}
	add := func(batch files.Batch) error { return finder.Add(batch.Traces) }
	read, err := t.source.scan(command, paths, add)
	if err != nil {
		return nil, none, err
	}
	if again := finder.Again(); again != nil && !read.Partial {
		if files.Size(paths) < 0 { // one of them is no regular file
			return nil, none, usageError{finder.ReadOnce()}
		}
		finder = again
		if read, err = t.source.scan(command, paths, add); err != nil {
			return nil, none, err
		}
	}
	spans, err := finder.Found()
	if err != nil && read.Partial {
		err = fmt.Errorf("reading was interrupted: %w", err)
	}
	if err != nil {
		return nil, none, err
	}
	trace := waterfall.NewTrace(spans)
	trace.Left, trace.Partial = finder.Left, read.Partial
	return trace, spans, nil
}
