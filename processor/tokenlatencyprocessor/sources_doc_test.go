// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The tables of docs/sources.md show the result of processing the spans in testdata. To update them:
//
//	go test ./processor/tokenlatencyprocessor -run TestSourcesDocument -update
func TestSourcesDocument(t *testing.T) {
	testenv.RequireTables(t, "docs/sources.md", map[string]string{"sources": systemsTable(t), "cases": casesTable(t)}, nil)
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
			require.True(t, s.source == names.SourceTokenStream || times == 1,
				"%s is in %d rows of docs/sources.md", folder, times)
		}
	}
}

func systemsTable(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| system | `tokenpulse.source` | `tokenpulse.vantage` | what you get | missing | estimated | setting for more |\n|---|---|---|---|---|---|---|\n")
	for _, row := range sourceRows {
		s := onlySummary(t, row.folders[0])
		for _, folder := range row.folders[1:] {
			require.Equal(t, s, onlySummary(t, folder), "%s and %s of one row", row.folders[0], folder)
		}
		var because, explained []string
		for _, r := range row.reasons {
			because = append(because, fmt.Sprintf("%s (%s)", strings.Join(r.numbers, ", "), r.because))
			explained = append(explained, r.numbers...)
		}
		require.ElementsMatch(t, s.estimated, explained, "estimated numbers and their reasons: %s", row.system)
		writeRow(&table, row.system, s.source, s.vantage, s.list(), strings.Join(s.unmeasured, ", "), strings.Join(because, "; "), row.more)
	}
	return table.String()
}

func casesTable(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| call | `tokenpulse.source` | `tokenpulse.vantage` | `tokenpulse.outcome` | what you get | missing | estimated |\n|---|---|---|---|---|---|---|\n")
	for _, row := range caseRows {
		s := onlySummary(t, row.folder)
		writeRow(&table, row.situation, s.source, s.vantage, s.outcome, s.list(), strings.Join(s.unmeasured, ", "), strings.Join(s.estimated, ", "))
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
	// unmeasured lists the missing indicators with the reasons.
	unmeasured []string
}

func (s summary) list() string {
	if len(s.numbers) == 0 {
		return "duration only"
	}
	return strings.Join(s.numbers, ", ")
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
	traces, err := golden.ReadTraces(filepath.Join("testdata", folder, "input.yaml"))
	require.NoError(t, err)
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
		s.unmeasured = append(s.unmeasured, short+": `"+reason+"`")
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
