// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/ranking"
	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

type slowestLister struct {
	source source
	limit  int
	by     string
	where  []string
	format string
}

func newSlowestCommand() *cobra.Command {
	l := &slowestLister{}
	command := &cobra.Command{
		Use:   "slowest FILE...",
		Short: "List the slowest requests in files",
		Long: `List the slowest requests in files: where most of their time went, their stalls, and the replica that served them.
` + "`tokenpulse trace`" + ` draws one of them. ~ marks an estimate, - what is not known.

` + filesHelp,
		Example: `  tokenpulse slowest spans/ -n 5 --by time_to_first_token
  tokenpulse slowest spans/ --where gen_ai.request.model=llama-3.1-8b --where outcome=error
  tokenpulse slowest spans/ --format json | jq -r '.requests[].trace_id'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return l.run(command, args) },
	}
	l.source.addFlags(command)
	flags := command.Flags()
	flags.IntVarP(&l.limit, "number", "n", 20, fmt.Sprintf("requests to list, at most %d", ranking.MaxRequests))
	flags.StringVar(&l.by, "by", slowest.Quantities[0].APIName(), "what makes a request slow: "+strings.Join(quantities(), ", "))
	flags.StringArrayVar(&l.where, "where", nil, "`attribute=value` of span or resource, or of outcome or vantage; repeatable: all must hold")
	flags.StringVar(&l.format, "format", formatTable, "table or json")
	return command
}

// quantities returns the names of slowest.Quantities.
func quantities() (all []string) {
	for _, id := range slowest.Quantities {
		all = append(all, id.APIName())
	}
	return all
}

func (l *slowestLister) run(command *cobra.Command, paths []string) error {
	requests, err := l.ranking()
	if err != nil {
		return err
	}
	settings, err := l.source.settings(command.Context())
	if err != nil {
		return err
	}
	settings.Latency.Timeline, settings.SLI.Series.Dimensions = annotate.TimelineKeep, nil // no series is shown
	_, read, err := l.source.read(command, paths, &pipeline.Settings{Latency: settings.Latency, SLI: settings.SLI, Watch: requests.Watch})
	if err != nil {
		return err
	}
	requests.Partial = read.Partial
	for _, name := range requests.UnknownAttributes() {
		fmt.Fprintf(command.ErrOrStderr(), "tokenpulse: warning: no request has the attribute %q of --where; check its name\n", name)
	}
	if l.format == formatJSON {
		err = requests.WriteJSON(command.OutOrStdout())
	} else {
		err = requests.WriteTable(command.OutOrStdout())
	}
	if err == nil && read.Partial {
		err = verdict(exitInterrupted)
	}
	return err
}

// ranking returns an empty ranking by the flags.
func (l *slowestLister) ranking() (*ranking.Ranking, error) {
	if !slices.Contains([]string{formatTable, formatJSON}, l.format) {
		return nil, usagef("--format is %q; valid values: %s, %s", l.format, formatTable, formatJSON)
	}
	if l.limit < 1 || l.limit > ranking.MaxRequests {
		return nil, usagef("-n is %d; give a number from 1 to %d", l.limit, ranking.MaxRequests)
	}
	by := slices.IndexFunc(slowest.Quantities[:], func(id numbers.ID) bool { return id.APIName() == l.by })
	if by < 0 {
		return nil, usagef("--by is %q; valid values: %s", l.by, strings.Join(quantities(), ", "))
	}
	var where []ranking.Condition
	for _, text := range l.where {
		condition, err := ranking.ParseCondition(text)
		if err != nil {
			return nil, usagef("--where: %w", err)
		}
		where = append(where, condition)
	}
	return ranking.New(slowest.Quantities[by], l.limit, where), nil
}
