// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arms"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/html"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/report"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Values of --format.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatHTML  = "html"
)

type reporter struct {
	source source
	by     []string
	format string
	output output
	page   *html.Page // with formatHTML
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
  tokenpulse report spans/ --format json -o baseline.json
  tokenpulse report spans/ --format html -o report.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return r.run(command, args) },
	}
	r.source.addFlags(command)
	flags := command.Flags()
	flags.StringSliceVar(&r.by, "by", nil, "`attribute` that distinguishes groups; repeatable (default: the dimensions of token_sli in --config)")
	flags.StringVar(&r.format, "format", formatTable, "table, json, or html: the charts of the live page in one file")
	r.output.addFlag(command, "the report")
	return command
}

func (r *reporter) run(command *cobra.Command, paths []string) error {
	switch {
	case !slices.Contains([]string{formatTable, formatJSON, formatHTML}, r.format):
		return usagef("--format is %q; valid values: %s, %s, %s", r.format, formatTable, formatJSON, formatHTML)
	case r.format == formatHTML && r.output == "" && terminal.Width(command.OutOrStdout()) > 0:
		return usagef("--format html is for a browser, not for a terminal; name a file with -o")
	}
	rep, err := r.read(command, paths)
	if err != nil {
		return err
	}
	err = r.output.write(command, func(out io.Writer) error { return r.write(out, rep) })
	if err == nil && rep.Partial {
		err = verdict(exitInterrupted)
	}
	return err
}

func (r *reporter) read(command *cobra.Command, paths []string) (*report.Report, error) {
	switch r.format {
	case formatHTML:
		return r.source.report(command, paths, r.by, func(set *pipeline.Settings) {
			r.page = html.New(set.SLI)
			set.Latency.Timeline, set.Watch = annotate.TimelineKeep, r.page.Watch
		})
	case formatJSON:
		return r.source.comparable(command, paths, r.by)
	default:
		return r.source.report(command, paths, r.by, func(*pipeline.Settings) {})
	}
}

func (r *reporter) write(out io.Writer, rep *report.Report) error {
	switch r.format {
	case formatHTML:
		return r.page.Write(out, rep)
	case formatJSON:
		return writeJSON(out, rep)
	default:
		return rep.WriteTable(out, terminal.Width(out))
	}
}

// comparable returns the report of files with the arms that compare takes.
func (s *source) comparable(command *cobra.Command, paths, by []string) (*report.Report, error) {
	all := &arms.Arms{}
	rep, err := s.report(command, paths, by, func(set *pipeline.Settings) {
		set.Watch = func(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
			all.Add(s.run, r, span, resource)
		}
	})
	if err == nil {
		rep.Arms = all
	}
	return rep, err
}

// report returns the report of files. by replaces the dimensions, unless it is empty. watch may set what sees each request.
func (s *source) report(command *cobra.Command, paths, by []string, watch func(*pipeline.Settings)) (*report.Report, error) {
	settings, err := s.settings(command.Context())
	if err == nil && len(by) > 0 {
		err = dimensions(&settings, by)
	}
	if err != nil {
		return nil, err
	}
	set := &pipeline.Settings{Latency: settings.Latency, SLI: settings.SLI}
	watch(set)
	p, read, err := s.read(command, paths, set)
	if err != nil {
		return nil, err
	}
	rep := report.New(p, settings.SLI.Series.Dimensions.Names())
	rep.Partial, rep.Input.Files, rep.Input.Damaged = read.Partial, read.Files, int64(read.Damaged)
	rep.Input.Notes = append(rep.Input.Notes, read.Notes...)
	rep.SLOs, err = slos(&settings)
	return rep, err
}

// conditionsOf returns the keys of an SLO besides name, indicator and threshold, as JSON, or "" if none is set.
func conditionsOf(c *judge.SLOConfig) string {
	text, err := json.Marshal(struct {
		ThresholdAttribute string                 `json:"threshold_attribute,omitempty"`
		ClientErrors       string                 `json:"client_errors,omitempty"`
		Match              map[string]string      `json:"match,omitempty"`
		MatchRegexp        map[string]string      `json:"match_regexp,omitempty"`
		MatchRange         map[string]judge.Range `json:"match_range,omitempty"`
	}{c.ThresholdAttribute, c.ClientErrors, c.Match, c.MatchRegexp, c.MatchRange})
	if err != nil || string(text) == "{}" { // an error is impossible: these are texts and finite numbers
		return ""
	}
	return string(text)
}

// slos describes the SLOs and objectives of settings.
func slos(settings *config.Config) ([]report.SLO, error) {
	rules, err := judge.NewRules(settings.Latency.SLOs, false)
	if err != nil {
		return nil, err
	}
	conditions := map[string]string{}
	for i := range settings.Latency.SLOs {
		c := &settings.Latency.SLOs[i]
		conditions[names.CleanLabel(c.Name)] = conditionsOf(c)
	}
	all := []report.SLO{}
	for _, d := range rules.Definitions() {
		all = append(all, report.SLO{Name: d.Name, Indicator: d.Indicator, Threshold: d.Threshold, Conditions: conditions[d.Name]})
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
