// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// percentiles are the columns of each indicator.
var percentiles = []float64{50, 95, 99}

// Write writes the rows as a table.
func Write(out io.Writer, rows []Row) error {
	if len(rows) == 0 {
		_, err := io.WriteString(out, "waiting for the first request\n")
		return err
	}
	header := []string{"MODEL", "SERVICE", "VANTAGE", "REQUESTS"}
	for _, indicator := range indicators {
		header = append(header, indicator.title+" p50", "p95", "p99", "n")
	}
	table := [][]string{header}
	for i := range rows {
		row := &rows[i]
		cells := []string{terminal.Name(row.Model), terminal.Name(row.Service), terminal.Name(row.Vantage), requests(row.Requests)}
		for i := range row.Latencies {
			latencies := &row.Latencies[i]
			for _, percentile := range percentiles {
				cells = append(cells, terminal.Duration(latencies.Quantile(percentile/100)))
			}
			cells = append(cells, strconv.FormatUint(latencies.Count(), 10))
		}
		table = append(table, cells)
	}
	return terminal.Table(out, table)
}

func total(byOutcome map[string]float64) (sum float64) {
	for _, n := range byOutcome {
		sum += n
	}
	return sum
}

// requests formats the total, and in brackets the requests that did not succeed.
func requests(byOutcome map[string]float64) string {
	total := total(byOutcome)
	var failed []string
	for _, outcome := range []string{names.OutcomeError, names.OutcomeCancelled, names.OutcomeIncomplete} {
		if n := byOutcome[outcome]; n > 0 {
			failed = append(failed, fmt.Sprintf("%.0f %s", n, outcome))
		}
	}
	if failed == nil {
		return fmt.Sprintf("%.0f", total)
	}
	return fmt.Sprintf("%.0f (%s)", total, strings.Join(failed, ", "))
}
