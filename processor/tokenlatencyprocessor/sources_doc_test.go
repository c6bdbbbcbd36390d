// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
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

// The tables of docs/sources.md show the result of processing the spans in testdata. To update them:
//
//	go test ./processor/tokenlatencyprocessor -run TestSourcesDocument -update
func TestSourcesDocument(t *testing.T) {
	systems, estimates := systemsTables(t)
	testenv.RequireTables(t, "docs/sources.md", map[string]string{"sources": systems, "estimates": estimates, "cases": casesTable(t)}, nil)
}

// Every folder with spans of another instrumentation has one row.
func TestSourcesDocument_IsComplete(t *testing.T) {
	var described []string
	for _, row := range sourceRows {
		described = append(described, row.folders...)
	}
	for _, row := range caseRows {
		described = append(described, row.folder)
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
				"%s is in %d rows of docs/sources.md", folder, times)
		}
	}
}

// systemsTables returns the table of systems, and that of the reasons for their estimates, which it
// refers to by number.
func systemsTables(t *testing.T) (systems, estimates string) {
	t.Helper()
	var table, reasons strings.Builder
	table.WriteString("| system | source, vantage | what you get | setting for more |\n|---|---|---|---|\n")
	reasons.WriteString("| mark | estimate |\n|---|---|\n")
	marks := map[string]int{} // by reason
	for _, row := range sourceRows {
		s := onlySummary(t, row.folders[0])
		for _, folder := range row.folders[1:] {
			require.Equal(t, s, onlySummary(t, folder), "%s and %s of one row", row.folders[0], folder)
		}
		var explained []string
		markOf := map[string]int{} // by number
		for _, r := range row.reasons {
			if marks[r.because] == 0 {
				marks[r.because] = len(marks) + 1
				writeRow(&reasons, strconv.Itoa(marks[r.because]), r.because)
			}
			for _, number := range r.numbers {
				markOf[number] = marks[r.because]
			}
			explained = append(explained, r.numbers...)
		}
		require.ElementsMatch(t, s.estimated, explained, "estimated numbers and their reasons: %s", row.system)
		writeRow(&table, row.system, s.source+", "+s.vantage, s.list(func(number string) string {
			if markOf[number] == 0 {
				return number
			}
			return fmt.Sprintf("%s<sup>%d</sup>", number, markOf[number])
		}), row.more)
	}
	return table.String(), reasons.String()
}

func casesTable(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| call | vantage, outcome | what you get |\n|---|---|---|\n")
	for _, row := range caseRows {
		s := onlySummary(t, row.folder)
		writeRow(&table, row.situation, s.vantage+", "+s.outcome, s.list(func(number string) string {
			if slices.Contains(s.estimated, number) {
				return "≈ " + number
			}
			return number
		}))
	}
	return table.String()
}

func writeRow(table *strings.Builder, cells ...string) {
	fmt.Fprintf(table, "| %s |\n", strings.Join(cells, " | "))
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

// list returns the numbers, each as shown returns it, and the missing indicators.
func (s summary) list(shown func(number string) string) string {
	var all []string
	for _, number := range s.numbers {
		all = append(all, shown(number))
	}
	if len(all) == 0 {
		all = append(all, "duration only")
	}
	if len(s.unmeasured) == 0 {
		return strings.Join(all, ", ")
	}
	return strings.Join(all, ", ") + "; no " + s.missing()
}

// missing returns the missing indicators with their reason, which both have in common if both are missing.
func (s summary) missing() string {
	if len(slices.Compact(slices.Clone(s.reasons))) == 1 {
		return strings.Join(s.unmeasured, ", ") + ": `" + s.reasons[0] + "`"
	}
	var all []string
	for i, indicator := range s.unmeasured {
		all = append(all, indicator+": `"+s.reasons[i]+"`")
	}
	return strings.Join(all, ", ")
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
