// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arms"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/report"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Values of --format.
const (
	formatTable = "table"
	formatJSON  = "json"
)

type reporter struct {
	source source
	by     []string
	format string
}

func newReportCommand() *cobra.Command {
	r := &reporter{}
	command := &cobra.Command{
		Use:   "report FILE...",
		Short: "Show outcomes, latencies and SLOs of the requests in files",
		Long: `Show outcomes, latencies and SLOs of the requests in files. The numbers are those of the Collector's token_latency
and token_sli. Each request counts once.

` + filesHelp,
		Example: `  tokenpulse report spans.jsonl
  tokenpulse report spans/ --slos slos.yaml --by gen_ai.request.model --by service.name
  tokenpulse report spans/ --format json > baseline.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return r.run(command, args) },
	}
	r.source.addFlags(command)
	flags := command.Flags()
	flags.StringSliceVar(&r.by, "by", nil, "`attribute` that distinguishes groups; repeatable (default: the dimensions of token_sli in --config)")
	flags.StringVar(&r.format, "format", formatTable, "table or json")
	return command
}

func (r *reporter) run(command *cobra.Command, paths []string) error {
	if !slices.Contains([]string{formatTable, formatJSON}, r.format) {
		return usagef("--format is %q; valid values: %s, %s", r.format, formatTable, formatJSON)
	}
	rep, err := r.source.report(command, paths, r.by, r.format == formatJSON)
	if err != nil {
		return err
	}
	out := command.OutOrStdout()
	if r.format == formatJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", " ")
		err = encoder.Encode(rep)
	} else {
		err = rep.WriteTable(out, terminal.Width(out))
	}
	if err == nil && rep.Partial {
		err = verdict(exitInterrupted)
	}
	return err
}

// report returns the report of files. by replaces the dimensions, unless it is empty. A comparable report has the arms that
// compare takes.
func (s *source) report(command *cobra.Command, paths, by []string, comparable bool) (*report.Report, error) {
	settings, err := s.settings(command.Context())
	if err == nil && len(by) > 0 {
		err = dimensions(&settings, by)
	}
	if err != nil {
		return nil, err
	}
	set := &pipeline.Settings{Latency: settings.Latency, SLI: settings.SLI}
	var all *arms.Arms
	if comparable {
		all = &arms.Arms{}
		set.Watch = func(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
			all.Add(s.run, r, span, resource)
		}
	}
	p, read, err := s.read(command, paths, set)
	if err != nil {
		return nil, err
	}
	rep := report.New(p, settings.SLI.Series.Dimensions.Names())
	rep.Arms = all
	rep.Partial, rep.Input.Files, rep.Input.Damaged = read.Partial, read.Files, int64(read.Damaged)
	rep.Input.Notes = append(rep.Input.Notes, read.Notes...)
	rep.SLOs, err = slos(&settings)
	return rep, err
}

// slos describes the SLOs and objectives of settings.
func slos(settings *config.Config) ([]report.SLO, error) {
	rules, err := judge.NewRules(settings.Latency.SLOs, false)
	if err != nil {
		return nil, err
	}
	all := []report.SLO{}
	for _, d := range rules.Definitions() {
		all = append(all, report.SLO{Name: d.Name, Indicator: d.Indicator, Threshold: d.Threshold})
	}
	for _, o := range settings.SLI.SLOObjectives() {
		i := slices.IndexFunc(all, func(s report.SLO) bool { return s.Name == o.SLO })
		if i < 0 {
			all, i = append(all, report.SLO{Name: o.SLO}), len(all)
		}
		all[i].Objective = o.Objective
	}
	return all, nil
}
