// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ranking

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/request"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// startFormat is that of the start of a request, which is in UTC.
const startFormat = "2006-01-02 15:04:05.000"

// WriteTable writes the requests as a table for a terminal. What is long is at the end of its lines.
func (r *Ranking) WriteTable(out io.Writer) error {
	slow := r.Slowest()
	if err := r.writeSummary(out, len(slow)); err != nil || len(slow) == 0 {
		return err
	}
	rows := [][]string{titles}
	for _, q := range slow {
		rows = append(rows, cells(q))
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return terminal.Table(out, withoutUnknown(rows))
}

// titles are those of the columns of cells.
var titles = []string{
	"START (UTC)", "DURATION", "TTFT", "TPOT", "MAX GAP", "INPUT", "OUTPUT", "MOST TIME", "STALLS", "OUTCOME", "VANTAGE", "MODEL", "TRACE", "SPAN",
	"REPLICA", "BREACHED",
}

// withoutUnknown returns the columns that are known of at least one request.
func withoutUnknown(rows [][]string) [][]string {
	kept := make([][]string, len(rows))
	for column := range rows[0] {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "-" }) {
			continue
		}
		for i, row := range rows {
			kept[i] = append(kept[i], row[column])
		}
	}
	return kept
}

func (r *Ranking) writeSummary(out io.Writer, shown int) error {
	of := fmt.Sprintf("%d requests", r.Matched)
	if r.where != nil {
		of = fmt.Sprintf("%d of %d requests that match", r.Matched, r.Requests)
	}
	if r.Unmeasured > 0 {
		of += fmt.Sprintf(" (%d without this latency)", r.Unmeasured)
	}
	if r.Partial {
		of += ". PART of the files: reading was interrupted."
	}
	_, err := fmt.Fprintf(out, "The %d slowest by %s of %s\n", shown, r.By.APIName(), of)
	return err
}

func cells(q *request.Request) []string {
	reason := terminal.Name(q.Reason())
	if q.ReasonEstimated() {
		reason = "~" + reason
	}
	breached := make([]string, 0, len(q.Breached))
	for _, name := range q.Breaches() {
		breached = append(breached, terminal.Printable(name))
	}
	return []string{
		q.Start.UTC().Format(startFormat), q.Seconds(numbers.RequestDuration), q.Seconds(numbers.TimeToFirstToken),
		q.Seconds(numbers.TimePerOutputToken), terminal.Duration(q.Gap), request.Count(q.InputTokens), request.Count(q.OutputTokens),
		reason, q.Stalled(), series.OutcomeNames[q.Outcome], terminal.Name(q.Vantage), terminal.Name(q.Model),
		hexOf(q.TraceID[:]), hexOf(q.SpanID[:]), terminal.Name(q.Replica), terminal.Name(strings.Join(breached, ",")),
	}
}
