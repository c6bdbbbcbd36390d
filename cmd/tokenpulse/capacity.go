// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/sizing"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/workload"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Objectives of capacity, as in the configuration of token_sli.
const (
	minimumObjective = 0.5
	maximumObjective = 0.999
	defaultObjective = 0.95
)

type capacityFinder struct {
	source    source
	slo       string
	objective float64
	replicas  int
	load      float64
	workload  string
	format    string
}

func newCapacityCommand() *cobra.Command {
	c := &capacityFinder{}
	command := &cobra.Command{
		Use:   "capacity RUN...",
		Short: "Find the largest load within an SLO, and the replicas that a load needs",
		Long: `Find the largest load of a replica that met the objective of an SLO. Each RUN is a file or a folder with the requests of one
run at one load. With --load or --workload, show how many replicas that needs.

The exit code is 0 if a run met the objective and one missed it, or 2 if the limit is unknown, or known on one side only.

` + filesHelp,
		Example: `  tokenpulse capacity run-*.jsonl --slos slos.yaml --objective 0.95
  tokenpulse capacity run-*.jsonl --slos slos.yaml --workload trace.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return c.run(command, args) },
	}
	c.source.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&c.slo, "slo", names.SLOAll, "`name` of an SLO, or all")
	flags.Float64Var(&c.objective, "objective", 0, fmt.Sprintf("`share` of good requests, such as 0.99 (default: the objective of the SLO in --config or --slos, or %v)", defaultObjective))
	flags.IntVar(&c.replicas, "replicas", 0, "`number` of replicas that served each run (default: those that its requests name)")
	flags.Float64Var(&c.load, "load", 0, "show how many replicas this `number` of requests per second needs")
	flags.StringVar(&c.workload, "workload", "", "show how many replicas the trace in this `file` needs, which tokenpulse workload wrote")
	flags.StringVar(&c.format, "format", formatTable, "table or json")
	command.MarkFlagsMutuallyExclusive("load", "workload")
	return command
}

func (c *capacityFinder) run(command *cobra.Command, paths []string) error {
	objective, err := c.check(command)
	if err != nil {
		return err
	}
	var trace *workload.Trace
	if c.workload != "" {
		if trace, err = readTrace(command.Context(), c.workload); err != nil {
			return err
		}
	}
	if err := distinct(paths); err != nil {
		return err
	}
	runs, err := c.measure(command, paths)
	if err != nil {
		return err
	}
	a := &sizing.Answer{SLO: c.slo, Limit: sizing.Find(runs, objective)}
	if a.Met != nil {
		if c.load > 0 {
			needed := a.ForRequests(c.load)
			a.Load = &needed
		}
		if trace != nil {
			a.Trace = a.ForTrace(trace)
		}
	}
	if err := c.write(command, a); err != nil {
		return err
	}
	if a.Reason != "" || a.Trace != nil && !a.Trace.Fits {
		return verdict(exitUndecided)
	}
	return nil
}

// measure reads the runs.
func (c *capacityFinder) measure(command *cobra.Command, paths []string) (runs []sizing.Run, err error) {
	var notes []string
	judged := false
	for _, path := range paths {
		list, read, err := c.source.arrivals(command, []string{path}, c.slo)
		if err != nil {
			return nil, err
		}
		if read.Partial {
			fmt.Fprintln(command.ErrOrStderr(), "Reading was interrupted: a part of the runs has no limit.")
			return nil, verdict(exitInterrupted)
		}
		for _, note := range read.Notes {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
				fmt.Fprintln(command.ErrOrStderr(), note)
			}
		}
		all, vantage := list.Shown()
		r := sizing.Measure(path, all, vantage, c.replicas)
		judged = judged || r.Eligible > 0
		runs = append(runs, r)
	}
	if !judged {
		return nil, fmt.Errorf("no request has a verdict of the SLO %q; give its definition by --slos", c.slo)
	}
	return runs, nil
}

// check returns the objective, or an error of the flags.
func (c *capacityFinder) check(command *cobra.Command) (objective float64, err error) {
	settings, err := c.source.settings(command.Context())
	if err != nil {
		return 0, err
	}
	objective = defaultObjective
	for _, o := range settings.SLI.SLOObjectives() {
		if o.SLO == c.slo {
			objective = o.Objective
		}
	}
	flags := command.Flags()
	if flags.Changed("objective") {
		objective = c.objective
	}
	switch {
	case !(minimumObjective <= objective && objective <= maximumObjective):
		return 0, usagef("--objective is %v; use the share of good requests, from %v to %v, such as 0.95", objective, minimumObjective, maximumObjective)
	case c.replicas < 0 || flags.Changed("replicas") && c.replicas == 0:
		return 0, usagef("--replicas is %d; give the number of replicas, at least 1", c.replicas)
	case flags.Changed("load") && !(c.load > 0 && c.load <= 1e9):
		return 0, usagef("--load is %v; give requests per second, such as 40", c.load)
	case !slices.Contains([]string{formatTable, formatJSON}, c.format):
		return 0, usagef("--format is %q; valid values: %s, %s", c.format, formatTable, formatJSON)
	}
	return objective, nil
}

func (c *capacityFinder) write(command *cobra.Command, a *sizing.Answer) error {
	out := command.OutOrStdout()
	if c.format == formatTable {
		return a.WriteTable(out)
	}
	return writeJSON(out, a)
}

// distinct returns an error if two runs have a file in common, which would count twice.
func distinct(paths []string) error {
	runOf := map[string]string{}
	for _, path := range paths {
		files, err := openfile.Files([]string{path})
		if err != nil {
			return usageError{err}
		}
		for _, file := range files {
			resolved, err := filepath.EvalSymlinks(file)
			if err == nil {
				resolved, err = filepath.Abs(resolved)
			}
			if err != nil {
				resolved = file // reading it will report why, or it is standard input
			}
			if other, ok := runOf[resolved]; ok {
				return usagef("%s is in the runs %s and %s; give the file of each run once", file, other, path)
			}
			runOf[resolved] = path
		}
	}
	return nil
}

func readTrace(ctx context.Context, path string) (*workload.Trace, error) {
	file, err := openfile.Open(ctx, path, nil)
	if err != nil {
		return nil, usageError{err}
	}
	defer file.Close()
	prefix := file.Prefix()
	trace, err := workload.Read(file)
	switch {
	case err == nil:
		return trace, nil
	case workload.Detect(prefix):
		return nil, fmt.Errorf("%s: %w", path, err)
	default:
		return nil, fmt.Errorf("%s: %w; tokenpulse workload writes a trace", path, err)
	}
}
