// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tokenpulse/tokenpulse/examples/prometheus"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Records of the rules that depend on objectives.
const (
	recordBudget = "tokenpulse_slo:error_budget"
	recordLimit  = "tokenpulse_slo:burn_rate_limit"
	recordSpent  = "tokenpulse_slo:budget_spent"
)

// writePrometheus writes the rules of this repository, with the objectives instead of the gauges that have them.
func writePrometheus(e *Export, budgets []budget, c counter) error {
	text := []string{
		"# Printed by `tokenpulse slos FILE --to prometheus`. Use it in place of rules.yaml, whose rules it has: the",
		"# objectives and windows are those of FILE, and need no `objectives` in the exporter or connector token_sli.",
		"#",
	}
	for _, block := range blocksOf(prometheus.Rules) {
		switch block.record {
		case recordBudget:
			text = append(text, budgetRules(budgets)...)
		case recordLimit:
			text = append(text, block.scaled(budgets)...)
		case recordSpent:
			text = append(text, historyRules(budgets)...)
			text = append(text, block.lines...)
			text = append(text, orHistory(c)...)
		default:
			text = append(text, block.lines...)
		}
	}
	e.Text = []byte(strings.Join(text, "\n") + "\n")
	return nil
}

// block is a recording rule in the text of a rule file, or the text up to the next one.
type block struct {
	record string
	lines  []string
}

const (
	ruleStart  = "      - record: "
	ruleIndent = "        "
)

// blocksOf splits a rule file whose lists are indented as in rules.yaml.
func blocksOf(text string) (all []block) {
	inRule := false
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		record, starts := strings.CutPrefix(line, ruleStart)
		ends := inRule && !strings.HasPrefix(line, ruleIndent)
		if starts || ends || len(all) == 0 {
			all = append(all, block{record: record})
			if !starts {
				all[len(all)-1].record = ""
			}
			inRule = starts
		}
		last := &all[len(all)-1]
		last.lines = append(last.lines, line)
	}
	return all
}

// budgetRules record the error budget of each SLO.
func budgetRules(budgets []budget) (lines []string) {
	for _, b := range budgets {
		lines = append(lines,
			"      # "+oneLine(fmt.Sprintf("%s%% over %s: %s", percentText(b.Objective.Objective), promDuration(b.Window), b.description)),
			ruleStart+recordBudget,
			ruleIndent+"expr: vector(1 - "+strconv.FormatFloat(b.Objective.Objective, 'f', -1, 64)+")",
			ruleIndent+"labels: {slo: "+strconv.Quote(b.SLO)+"}",
		)
	}
	return lines
}

// oneLine keeps a text from ending its comment, and control characters out of it.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }), " ")
}

// budgetWindow is the window for which the factors of the alerts are made.
const budgetWindow = 30 * 24 * time.Hour

// scaled returns the rule of a limit, for each SLO. The share of the budget that an alert lets burn is the same for all windows.
func (b *block) scaled(budgets []budget) (lines []string) {
	text := strings.Join(b.lines, "\n")
	for i := range slo.Alerts {
		alert := &slo.Alerts[i]
		if !strings.Contains(text, "alert: "+alert.Name) {
			continue
		}
		for _, one := range budgets {
			// A burn rate of 1 meets the objective, so no alert starts below it.
			factor := max(1, alert.Factor*float64(one.Window)/float64(budgetWindow))
			lines = append(lines, strings.NewReplacer(
				recordBudget, recordBudget+"{slo="+strconv.Quote(one.SLO)+"}",
				", "+number(alert.Factor)+")", ", "+number(factor)+")",
				"labels: {", "labels: {slo: "+strconv.Quote(one.SLO)+", ",
			).Replace(text))
		}
	}
	return lines
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// recordHistory is the spent budget of each SLO as Prometheus knows it.
const recordHistory = "tokenpulse_slo:budget_spent_of_history"

// historyRules record what each SLO spent over its window. Hours are added up: a query over 30 days of counters would read too many samples.
func historyRules(budgets []budget) (lines []string) {
	for _, b := range budgets {
		selector := "{slo=" + strconv.Quote(b.SLO) + "}"
		window := "[" + promDuration(b.Window) + ":1h]"
		lines = append(lines,
			ruleStart+recordHistory,
			ruleIndent+"expr: |",
			ruleIndent+"  sum_over_time((tokenpulse_slo:error_ratio:1h"+selector+" * tokenpulse_slo:requests:1h"+selector+")"+window+")",
			ruleIndent+"  / sum_over_time(tokenpulse_slo:requests:1h"+selector+window+")",
			ruleIndent+"  / on (slo) group_left () "+recordBudget,
			ruleIndent+"labels: {slo: "+strconv.Quote(b.SLO)+"}",
		)
	}
	return lines
}

// orHistory adds to the rule of the spent budget what applies without the gauges of an objective.
func orHistory(c counter) []string {
	same := "and on (slo, " + strings.Join(c.grouping, ", ") + ")"
	return []string{
		ruleIndent + "  or",
		ruleIndent + "  " + recordHistory,
		ruleIndent + "  and",
		ruleIndent + "  tokenpulse_slo:requests:3d >= 20",
		ruleIndent + "  " + same,
		ruleIndent + "  " + c.metric + " offset 1d",
	}
}
