// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/files"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// source holds the flags of commands that read the requests of files.
type source struct {
	config, slos string
	strict       bool

	named []string // paths of the command line
	// run is that of the requests that a pipeline watches, see files.Batch.
	run string
}

// filesHelp describes the arguments of these commands.
const filesHelp = `FILE is a file, a folder or - for standard input: spans in OTLP as the Collector's file exporter writes them, token
events, or results of AIPerf, vLLM's, SGLang's or guidellm's benchmark or inference-perf with the data of each request.
gzip and zstd are decompressed.`

func (s *source) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&s.config, "config", "", "settings of token_latency and token_sli: a `file` with the Collector's configuration, or with these settings alone")
	flags.StringVar(&s.slos, "slos", "", "`file` with slos and objectives; replaces those of --config, and verdicts that spans already have")
	flags.BoolVar(&s.strict, "strict", false, "end at the first damaged message, rather than count it")
}

// settings returns the settings of the flags.
func (s *source) settings(ctx context.Context) (config.Config, error) {
	settings := config.Default()
	var err error
	if s.config != "" {
		settings, err = config.Load(ctx, s.config)
	}
	if err == nil && s.slos != "" {
		err = settings.TakeSLOs(ctx, s.slos)
	}
	if err != nil {
		return settings, usageError{err}
	}
	return settings, nil
}

// read passes the spans of files through a pipeline, whose settings it completes, and shows the progress.
func (s *source) read(command *cobra.Command, paths []string, set *pipeline.Settings) (*pipeline.Pipeline, files.Result, error) {
	ctx := context.WithoutCancel(command.Context())
	s.named = paths
	paths, err := openfile.Files(paths)
	if err != nil {
		return nil, files.Result{}, usageError{err}
	}
	set.Logger, set.Rejudge = warnings(command.ErrOrStderr()), s.slos != ""
	p, err := pipeline.New(ctx, *set)
	if err != nil {
		return nil, files.Result{}, err
	}
	result, err := s.scan(command, paths, func(batch files.Batch) error {
		if batch.Run != s.run {
			if err := p.Flush(); err != nil {
				return err
			}
			s.run = batch.Run
		}
		return p.Consume(ctx, batch.Traces)
	})
	if err != nil {
		return nil, result, err
	}
	return p, result, p.Close(ctx)
}

// scan calls consume with the spans of files, and shows the progress.
func (s *source) scan(command *cobra.Command, paths []string, consume func(files.Batch) error) (files.Result, error) {
	out := command.ErrOrStderr()
	bar := newProgress(out, files.Size(paths))
	defer bar.clear()
	options := files.Options{Named: s.named, Strict: s.strict, Bytes: bar.bytes(), Damaged: func(err error) {
		bar.clear()
		fmt.Fprintln(out, "tokenpulse: damaged:", err)
	}}
	return files.Read(command.Context(), paths, options, func(batch files.Batch) error {
		bar.show()
		return consume(batch)
	})
}

// dimensions replaces the attributes that distinguish series by those of a flag.
func dimensions(settings *config.Config, by []string) error {
	settings.SLI.Series.Dimensions = series.DimensionsOf(by...)
	if err := settings.SLI.Series.Problems(); len(err) > 0 {
		return usagef("--by: %w", err[0])
	}
	return nil
}
