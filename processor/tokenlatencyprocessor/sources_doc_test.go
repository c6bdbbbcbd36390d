// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/golden"
)

// The table of docs/sources.md shows the result of processing the spans in testdata. To update it:
//
//	go test ./processor/tokenlatencyprocessor -run TestSourcesDocument -update
func TestSourcesDocument(t *testing.T) {
	testenv.RequireTables(t, "docs/sources.md", map[string]string{"sources": systemsTable(t)})
}

// Every folder with spans of another instrumentation is of one system, or of an unusual call.
func TestSourcesDocument_IsComplete(t *testing.T) {
	described := slices.Clone(unusualCalls)
	for _, row := range sourceRows {
		described = append(described, row.folders...)
	}
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.yaml"))
	require.NoError(t, err)
	for _, input := range inputs {
		folder := filepath.Base(filepath.Dir(input))
		for _, s := range summariesOf(t, folder) {
			times := 0
			for _, name := range described {
				if name == folder {
					times++
				}
			}
			require.True(t, s.source == names.SourceTokenStream || folder == everyNumber || times == 1,
				"%s is %d times in sourceRows and unusualCalls", folder, times)
		}
	}
}

// systemsTable returns the table of systems. Those of one vantage with the same numbers share a row.
func systemsTable(t *testing.T) string {
	t.Helper()
	var order []string
	systems := map[string][]string{} // by the rest of their row
	for _, row := range sourceRows {
		s := onlySummary(t, row.folders[0])
		for _, folder := range row.folders[1:] {
			require.Equal(t, s, onlySummary(t, folder), "%s and %s of one row", row.folders[0], folder)
		}
		rest := strings.Join(append(row.cells(t, s), s.vantage), " | ")
		if systems[rest] == nil {
			order = append(order, rest)
		}
		systems[rest] = append(systems[rest], row.system)
	}
	var table strings.Builder
	table.WriteString("| system | TTFT | TPOT, decode | ITL | queue | vantage |\n|---|---|---|---|---|---|\n")
	for _, rest := range order {
		fmt.Fprintf(&table, "| %s | %s |\n", strings.Join(systems[rest], "; "), rest)
	}
	return table.String()
}

// cells returns what the system gives of each number in the columns of the table. It checks what the
// text below the table says of the numbers without a column: prefill, tokens, and why others are missing.
func (row sourceRow) cells(t *testing.T, s summary) []string {
	t.Helper()
	is := map[string]string{} // by number
	for _, number := range s.numbers {
		is[number] = "exact"
	}
	var estimated []string
	for _, e := range row.estimates {
		for _, number := range e.numbers {
			is[number] = e.is
		}
		estimated = append(estimated, e.numbers...)
	}
	if is["prefill"] != "" && is["queue"] == "" {
		estimated = append(estimated, "prefill")
	}
	require.ElementsMatch(t, s.estimated, estimated, "estimated numbers of %s", row.system)
	require.Equal(t, is["decode"] != "", is["prefill"] != "", "prefill and decode of %s", row.system)
	if is["TPOT"] != "" {
		require.Equal(t, is["decode"], is["TPOT"], "TPOT and decode of %s", row.system)
	}
	require.Equal(t, row.noTokens, is["tokens"] == "", "tokens of %s", row.system)
	for _, reason := range s.reasons {
		require.Equal(t, "not_reported", reason, row.system)
	}
	gaps := ""
	for number, what := range is {
		if number == "ITL" || what != "exact" && (number == "mean gap" || strings.HasPrefix(number, "ITL ")) {
			gaps = what
		} else if number == "mean gap" || strings.HasPrefix(number, "ITL ") {
			gaps = strings.TrimPrefix(number, "ITL ")
		}
	}
	return []string{cmp.Or(is["TTFT"], "-"), cmp.Or(is["decode"], "-"), cmp.Or(gaps, "-"), cmp.Or(is["queue"], "-")}
}

// summary is the result of processing a model call.
type summary struct {
	source, vantage, outcome string
	// numbers lists the numbers on the span by their names in the document, and estimated those that
	// are estimates.
	numbers, estimated []string
	// unmeasured lists the missing indicators, and reasons why each is missing.
	unmeasured, reasons []string
}

// onlySummary returns the summary of the only model call in a folder of testdata.
func onlySummary(t *testing.T, folder string) summary {
	t.Helper()
	all := summariesOf(t, folder)
	require.Len(t, all, 1, folder)
	return all[0]
}

// summariesOf returns the summary of each model call in a folder.
func summariesOf(t *testing.T, folder string) []summary {
	t.Helper()
	traces := golden.ReadTraces(t, filepath.Join("testdata", folder, "input.yaml"))
	for _, span := range spansOf(traces) {
		packTimeline(t, span.Attributes())
	}
	cfg := readConfig(t, filepath.Join("testdata", folder))
	cfg.Detail = annotate.DetailFull
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	var all []summary
	for _, span := range spansOf(sink.AllTraces()[0]) {
		own := span.Attributes()
		if attributes.Text(own, names.Source) == "" {
			continue
		}
		s := summary{
			source: attributes.Text(own, names.Source), vantage: attributes.Text(own, names.Vantage), outcome: attributes.Text(own, names.Outcome),
		}
		s.add(own)
		all = append(all, s)
	}
	return all
}

// listOn returns the texts of an attribute that is a list.
func listOn(attributes pcommon.Map, name string) (texts []string) {
	if list, ok := attributes.Get(name); ok {
		for _, v := range list.Slice().All() {
			texts = append(texts, v.Str())
		}
	}
	return texts
}

// add lists the numbers of a span.
func (s *summary) add(attributes pcommon.Map) {
	add := func(name, attribute string) {
		s.numbers = append(s.numbers, name)
		if slices.Contains(listOn(attributes, names.Estimated), strings.TrimPrefix(attribute, names.Prefix)) {
			s.estimated = append(s.estimated, name)
		}
	}
	addIf := func(name, attribute string) {
		if has(attributes, attribute) {
			add(name, attribute)
		}
	}
	for _, entry := range listOn(attributes, names.Unmeasured) {
		indicator, reason, _ := strings.Cut(entry, "=")
		short := map[string]string{"time_to_first_token": "TTFT", "time_per_output_token": "TPOT"}[indicator]
		s.unmeasured, s.reasons = append(s.unmeasured, short), append(s.reasons, reason)
	}
	addIf("TTFT", "tokenpulse.time_to_first_token")
	addIf("TPOT", "tokenpulse.time_per_output_token")
	if statistics := statisticsOf(attributes, "tokenpulse.inter_token_latency"); has(attributes, "tokenpulse.inter_token_latency.sketch") {
		add("ITL", "tokenpulse.inter_token_latency")
	} else if len(statistics) > 0 {
		add("ITL "+strings.Join(statistics, "/"), "tokenpulse.inter_token_latency")
	} else if slices.Equal(statisticsOf(attributes, "tokenpulse.inter_chunk_latency"), []string{"mean"}) {
		add("mean gap", "tokenpulse.inter_chunk_latency")
	}
	addIf("queue", "tokenpulse.queue.duration")
	addIf("prefill", "tokenpulse.prefill.duration")
	addIf("decode", "tokenpulse.decode.duration")
	if has(attributes, names.GenAIOutputTokens) || has(attributes, "tokenpulse.token_count") {
		s.numbers = append(s.numbers, "tokens")
	}
}

// statisticsOf lists the statistics of a distribution on a span.
func statisticsOf(attributes pcommon.Map, distribution string) []string {
	var statistics []string
	for _, suffix := range []string{".mean", ".p50", ".p95", ".p99", ".max"} {
		if has(attributes, distribution+suffix) {
			statistics = append(statistics, strings.TrimPrefix(suffix, "."))
		}
	}
	return statistics
}

func has(attributes pcommon.Map, name string) bool {
	_, found := attributes.Get(name)
	return found
}
