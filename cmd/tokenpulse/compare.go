// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arms"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/report"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/twosample"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

type comparer struct {
	source     source
	slos       []string
	indicators []string
	tolerance  float64
	format     string
}

func newCompareCommand() *cobra.Command {
	c := &comparer{}
	command := &cobra.Command{
		Use:   "compare BASELINE CANDIDATE",
		Short: "Decide whether the requests of a run are worse than those of another one",
		Long: `Decide whether the requests of a run are worse than those of another one, under like traffic. Each is a report of
tokenpulse report --format json, or a FILE.

` + filesHelp + `

Without --slo and --indicator, the median and the 95th percentile of time to first token and of time per output token
decide. The exit code is 0 if the candidate is not worse by more than the tolerance, 1 if it is worse, 2 if the requests
do not show it, and 64 if the command line is wrong.`,
		Example: `  tokenpulse compare baseline.json candidate/ --tolerance 0.1
  tokenpulse compare baseline/ candidate/ --slos slos.yaml --slo all`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error { return c.run(command, args) },
	}
	c.source.addFlags(command)
	flags := command.Flags()
	flags.StringSliceVar(&c.slos, "slo", nil, "SLO `name` of --slos or --config, or all for all SLOs together: its odds of a bad request decide; repeatable")
	flags.StringSliceVar(&c.indicators, "indicator", nil, "`latency` whose p50 and p95 decide: "+strings.Join(indicatorNames(), ", ")+"; repeatable")
	flags.Float64Var(&c.tolerance, "tolerance", 0, fmt.Sprintf("`share` by which a percentile, or the odds of a bad request, may be larger (default %v for percentiles, %v for odds)",
		twosample.DefaultTolerance, twosample.DefaultOddsTolerance))
	flags.StringVar(&c.format, "format", formatTable, "table or json")
	return command
}

func indicatorNames() (names []string) {
	for i := range twosample.Indicators {
		names = append(names, i.String())
	}
	return names
}

// question returns what the flags ask.
func (c *comparer) question(command *cobra.Command) (q twosample.Question, err error) {
	q = twosample.Question{SLOs: c.slos, Tolerance: twosample.DefaultTolerance, OddsTolerance: twosample.DefaultOddsTolerance, Alpha: twosample.DefaultAlpha}
	if command.Flags().Changed("tolerance") {
		q.Tolerance, q.OddsTolerance = c.tolerance, c.tolerance
	}
	for _, name := range c.indicators {
		i := slices.Index(indicatorNames(), name)
		if i < 0 {
			return q, usagef("--indicator is %q; valid values: %s", name, strings.Join(indicatorNames(), ", "))
		}
		q.Indicators = append(q.Indicators, twosample.Indicator(i)) //nolint:gosec // there are few
	}
	if len(q.SLOs)+len(q.Indicators) == 0 {
		q.Indicators = []twosample.Indicator{twosample.TimeToFirstToken, twosample.TimePerOutputToken}
	}
	if c.format != formatTable && c.format != formatJSON {
		return q, usagef("--format is %q; valid values: %s, %s", c.format, formatTable, formatJSON)
	}
	return q, nil
}

func (c *comparer) run(command *cobra.Command, paths []string) error {
	question, err := c.question(command)
	if err != nil {
		return err
	}
	var sides [2]*report.Report
	for i, path := range paths {
		if sides[i], err = c.side(command, path); err != nil {
			return err
		}
	}
	for _, name := range question.SLOs {
		if err := sameSLO(name, sides[0].SLOs, sides[1].SLOs); err != nil {
			return err
		}
	}
	vantage, baseline, candidate, err := arms.Common(sides[0].Arms, sides[1].Arms)
	if err != nil {
		return err
	}
	result, err := twosample.Compare(baseline, candidate, question)
	if err != nil {
		return usageError{err}
	}
	out := command.OutOrStdout()
	if c.format == formatJSON {
		err = writeJSON(out, result)
	} else {
		err = writeComparison(out, vantage.String(), &result)
	}
	if code := result.Verdict.ExitCode(); err == nil && code != 0 {
		err = verdict(code)
	}
	return err
}

// side returns the report of one side: a saved one, or that of files.
func (c *comparer) side(command *cobra.Command, path string) (*report.Report, error) {
	saved, err := savedReport(command, path)
	if saved != nil || err != nil {
		return saved, err
	}
	rep, err := c.source.comparable(command, []string{path}, nil)
	if err == nil && rep.Partial {
		err = errors.New("interrupted: a part of the files gives no verdict")
	}
	return rep, err
}

// maxReport limits the size of a saved report.
const maxReport = 256 << 20

// savedReport returns the report in a file, or nil if the file is of another kind.
func savedReport(command *cobra.Command, path string) (*report.Report, error) {
	if files, err := openfile.Files([]string{path}); err != nil || len(files) != 1 || files[0] != path || path == openfile.Stdin {
		return nil, nil // a folder, or what reading the files will report
	}
	file, err := openfile.Open(command.Context(), path, nil)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if !report.Is(file.Prefix()) {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(file, maxReport+1))
	if err != nil {
		return nil, err
	}
	rep := &report.Report{}
	switch err := json.NewDecoder(bytes.NewReader(text)).Decode(rep); {
	case len(text) > maxReport:
		return nil, fmt.Errorf("%s: a report may have at most %d MiB", path, maxReport>>20)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case rep.Version != report.Version:
		return nil, fmt.Errorf("%s: version %d of a report cannot be read; write it again with this version of tokenpulse", path, rep.Version)
	case rep.Partial:
		return nil, fmt.Errorf("%s is the report of a part of some files, which gives no verdict; write it again without an interruption", path)
	case rep.Arms == nil:
		return nil, fmt.Errorf("%s has no `arms`; write it again with tokenpulse report --format json", path)
	}
	return rep, nil
}

// sameSLO returns an error unless an SLO means the same on both sides, as far as reports say.
func sameSLO(name string, baseline, candidate []report.SLO) error {
	for _, slo := range slices.Concat(baseline, candidate) {
		if name != slo.Name && name != names.SLOAll {
			continue
		}
		for _, side := range [][]report.SLO{baseline, candidate} {
			other := slices.IndexFunc(side, func(s report.SLO) bool { return s.Name == slo.Name })
			if slo.Indicator != "" && (other < 0 || !side[other].Same(&slo)) {
				return usagef("the SLO %q is not the same on both sides; judge both with the same --slos", slo.Name)
			}
		}
	}
	return nil
}

// writeComparison writes the result as a table.
func writeComparison(out io.Writer, vantage string, r *twosample.Result) error {
	var b bytes.Buffer
	for _, side := range []struct {
		name string
		of   *twosample.Summary
	}{{"baseline", &r.Baseline}, {"candidate", &r.Candidate}} {
		fmt.Fprintf(&b, "%-9s  %d requests, %d unsuccessful, %s, %s", side.name, side.of.Requests, side.of.Unsuccessful,
			terminal.Plural(side.of.Runs, "run"), terminal.Plural(side.of.Replicas, "replica"))
		if side.of.RequestRate > 0 {
			fmt.Fprintf(&b, ", %.3g requests/s, %.3g in flight", side.of.RequestRate, side.of.InFlight)
		}
		fmt.Fprintln(&b)
	}
	if vantage != "" {
		fmt.Fprintf(&b, "seen by    %s\n", vantage)
	}
	if len(r.Rows) > 0 {
		fmt.Fprintln(&b)
		rows := [][]string{{"COMPARED", "BASELINE", "CANDIDATE", "RATIO", "FROM", "TO", "VERDICT"}}
		for i := range r.Rows {
			rows = append(rows, comparisonRow(&r.Rows[i]))
		}
		if err := terminal.Table(&b, rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(&b, "\n%s: %s\n", strings.ToUpper(string(r.Verdict)), r.Hint)
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "note: %s\n", warning)
	}
	_, err := out.Write(b.Bytes())
	return err
}

func comparisonRow(r *twosample.Row) []string {
	name, value := "unsuccessful", terminal.Percent
	switch {
	case r.SLO != "":
		name = "bad by " + terminal.Name(r.SLO)
	case r.Indicator != "":
		name, value = fmt.Sprintf("%s p%g", r.Indicator, 100*r.Percentile), terminal.Duration
	}
	baseline, candidate := value(r.Baseline.Value), value(r.Candidate.Value)
	if r.Baseline.Independent == 0 { // nothing was compared
		baseline, candidate = "-", "-"
	}
	said := string(r.Verdict)
	if !r.Decides {
		said = "(" + said + ")"
	}
	return []string{name, baseline, candidate, ratio(r.Ratio.Estimate), ratio(r.Ratio.Lower), ratio(r.Ratio.Upper), said}
}

// ratio formats one that may be unknown or open.
func ratio(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
