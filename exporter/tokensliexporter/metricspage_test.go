// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// The tables in docs/metrics.md are generated. To rewrite them:
//
//	go test ./exporter/tokensliexporter -run TestMetricsPage_IsUpToDate -update
func TestMetricsPage_IsUpToDate(t *testing.T) {
	testenv.RequireTables(t, "docs/metrics.md", map[string]string{
		"histograms":   histogramTable(t),
		"counters":     metricTable(t, counterRows()),
		"slos":         metricTable(t, sloRows()),
		"open streams": metricTable(t, openStreamRows()),
		"engines":      metricTable(t, engineRows()),
		"comparisons":  metricTable(t, comparisonRows()),
		"capacity":     metricTable(t, capacityRows()),
		"dimensions":   dimensionTable(t),
		"label values": labelValueTable(),
		"bounds":       boundsTable(),
	})
}

func TestMetricsPage_LabelsMatchAScrape(t *testing.T) {
	h := start(t, func(c *Config) {
		everyMetric(c)
		c.Shared.Objectives = []keeper.Objective{{SLO: names.SLOAll, Objective: 0.9, Window: time.Hour}}
		c.Compare = []compare.Question{{Pair: compare.Pair{Dimension: "service.name", Baseline: "old", Candidate: "new", SLO: "tpot"}}}
		withCapacity(c)
	})
	withoutPace := with(map[string]any{"tokenpulse.time_per_output_token": nil, "tokenpulse.unmeasured": []any{"time_per_output_token=buffered"}})
	newFleet(h, ofToKnee+time.Minute, "a").toKnee(t)
	h.send(t, everyNumber(), withoutPace, with(map[string]any{"tokenpulse.outcome": "error"}))
	seriesLabels := []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "service_name", "vantage"}
	openInProcess(t, inprocess.OpenStream{Vantage: "gateway", Dimensions: []string{"chat", "openai", "m", "chat"}})
	enginesInProcess(t, engines.Now())
	families := h.families(t, protobuf)
	for _, row := range allRows() {
		name := prometheusName(t, row)
		require.Contains(t, families, name)
		var labels []string
		for _, l := range families[name].Metric[0].Label {
			if !slices.Contains(seriesLabels, l.GetName()) {
				labels = append(labels, l.GetName())
			}
		}
		require.ElementsMatch(t, row.labels, labels, name)
	}
	require.Len(t, families, len(allRows()))
}

// metricRow is a metric of the page.
type metricRow struct {
	numbers.Metric
	kind   dto.MetricType
	labels []string // besides those that every metric has
}

func allRows() []metricRow {
	return slices.Concat(histogramRows(), counterRows(), sloRows(), openStreamRows(), engineRows(), comparisonRows(), capacityRows(), percentileRows())
}

// histogramRows has one row for the quantities that share a metric.
func histogramRows() (rows []metricRow) {
	for _, id := range numbers.Histograms {
		row := metricRow{id.Row().Metric, dto.MetricType_HISTOGRAM, []string{names.LabelOutcome}}
		if name, value := id.Row().Label(); value != "" {
			row.labels = append(row.labels, name)
		}
		rows = appendOnce(rows, row)
	}
	return rows
}

func percentileRows() (rows []metricRow) {
	for _, row := range histogramRows() {
		row.Name += names.SuffixPercentile
		row.kind = dto.MetricType_GAUGE
		row.labels = append(row.labels, names.LabelPercentile, names.LabelWindow)
		rows = append(rows, row)
	}
	return rows
}

func counterRows() []metricRow {
	rows := []metricRow{{series.Requests, dto.MetricType_COUNTER, []string{names.LabelOutcome}}}
	for _, c := range series.Counters {
		row := metricRow{c.Metric, dto.MetricType_COUNTER, nil}
		if c.Type != "" {
			row.labels = append(row.labels, names.LabelType)
		}
		if c.Indicator != "" {
			row.labels = append(row.labels, names.LabelIndicator, names.LabelReason)
		}
		if c.Cause != "" {
			row.labels = append(row.labels, names.LabelCause)
		}
		rows = appendOnce(rows, row)
	}
	return rows
}

func sloRows() []metricRow {
	rows := []metricRow{{series.SLORequests, dto.MetricType_COUNTER, []string{names.LabelSLO, names.LabelVerdict}}}
	for _, m := range series.Gauges {
		row := metricRow{m, dto.MetricType_GAUGE, []string{names.LabelSLO}}
		if m.Name == names.SLOBurnRate {
			row.labels = append(row.labels, names.LabelWindow)
		}
		rows = append(rows, row)
	}
	return rows
}

func openStreamRows() []metricRow {
	return []metricRow{{series.StreamsOpen, dto.MetricType_GAUGE, []string{names.LabelPhase, names.LabelSilent}}}
}

func engineRows() []metricRow {
	return []metricRow{
		{series.EngineState, dto.MetricType_GAUGE, []string{names.LabelEngine, names.LabelState}},
		{series.EngineSilence, dto.MetricType_GAUGE, []string{names.LabelEngine}},
	}
}

func comparisonRows() []metricRow {
	return []metricRow{{compareVerdict, dto.MetricType_GAUGE, []string{names.LabelDimension, names.LabelBaseline, names.LabelCandidate, names.LabelSLO, names.LabelVerdict}}}
}

func capacityRows() []metricRow {
	return []metricRow{
		{capacityLoad, dto.MetricType_GAUGE, []string{names.LabelSLO, names.LabelKind}},
		{capacityLimit, dto.MetricType_GAUGE, []string{names.LabelSLO, names.LabelKind}},
		{capacityUtilization, dto.MetricType_GAUGE, []string{names.LabelSLO}},
	}
}

func appendOnce(rows []metricRow, row metricRow) []metricRow {
	if slices.ContainsFunc(rows, func(r metricRow) bool { return r.Name == row.Name }) {
		return rows
	}
	return append(rows, row)
}

func metricTable(t *testing.T, rows []metricRow) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| metric | Prometheus name | labels | default | meaning |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s | %s |\n",
			row.Name, prometheusName(t, row), quoted(row.labels), onByDefault(row), row.Description)
	}
	return table.String()
}

// histogramTable also says whether the percentile gauge of each histogram is on.
func histogramTable(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| metric | Prometheus name | default | gauges |\n|---|---|---|---|\n")
	gauges := percentileRows()
	for i, row := range histogramRows() {
		gauge := "off"
		if strings.HasPrefix(onByDefault(gauges[i]), "on") {
			gauge = "on"
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s |\n", row.Name, prometheusName(t, row), onByDefault(row), gauge)
	}
	return table.String()
}

// onByDefault says which components emit a metric by default.
func onByDefault(row metricRow) string {
	exporter, publisher := createDefaultConfig().(*Config).Shared, publish.NewDefaultConfig().Shared
	switch on := exporter.Selection().Has(row.Name); {
	case on && publisher.Selection().Has(row.Name):
		return "on"
	case on:
		return "on in the exporter"
	}
	return "off"
}

func prometheusName(t *testing.T, row metricRow) string {
	t.Helper()
	f, err := newFamily(&row.Metric, row.kind)
	require.NoError(t, err)
	return f.GetName()
}

// dimensionTable lists the labels of every metric in the default configuration.
func dimensionTable(t *testing.T) string {
	t.Helper()
	var rows [][2]string
	for _, dimension := range series.NewDefaultConfig().Dimensions.Names() {
		rows = append(rows, [2]string{dimension, "default dimension"})
	}
	rows = append(rows,
		[2]string{names.LabelVantage, "observer of the request"},
		[2]string{names.LabelOverflow, "`true` for requests beyond `max_series`; without dimensions and vantage"})
	var table strings.Builder
	table.WriteString("| attribute | Prometheus label | meaning |\n|---|---|---|\n")
	for _, row := range rows {
		var namer otlptranslator.LabelNamer
		label, err := namer.Build(row[0])
		require.NoError(t, err)
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", row[0], label, row[1])
	}
	return table.String()
}

func labelValueTable() string {
	var phases, positions, types, states, verdicts, burnWindows, percentiles, windows []string
	for _, id := range numbers.Histograms {
		phases = append(phases, id.Row().Phase)
		positions = append(positions, id.Row().Position)
	}
	phases = append(phases, inprocess.OpenStreamPhases[:]...)
	for _, c := range series.Counters {
		types = append(types, c.Type)
	}
	for v := range slo.Verdicts {
		verdicts = append(verdicts, v.String())
	}
	for s := range liveness.States {
		states = append(states, s.String())
	}
	for _, w := range slo.BurnWindows {
		burnWindows = append(burnWindows, model.Duration(w).String())
	}
	config := createDefaultConfig().(*Config)
	for _, p := range config.Percentiles {
		percentiles = append(percentiles, number(p))
	}
	for _, w := range config.Windows {
		windows = append(windows, model.Duration(w).String())
	}
	var table strings.Builder
	table.WriteString("| label | values |\n|---|---|\n")
	for _, row := range [][2]string{
		{names.LabelVantage, quoted([]string{timeline.VantageClient.String(), timeline.VantageGateway.String(), timeline.VantageServer.String(), timeline.VantageEngine.String()})},
		{names.LabelOutcome, quoted(series.OutcomeNames[:])},
		{names.LabelPhase, quoted(phases)},
		{names.LabelPosition, quoted(positions)},
		{names.LabelType, quoted(types)},
		{names.LabelIndicator, quoted(names.UnmeasuredIndicators[:])},
		{names.LabelReason, quoted(names.UnmeasuredReasons[:])},
		{names.LabelCause, quoted(names.FailureCauses[:])},
		{names.LabelSilent, quoted(inprocess.OpenStreamBands[:])},
		{names.LabelEngine, "host and port of an upstream of `token_tap`, or `service.instance.id`"},
		{names.LabelState, quoted(states)},
		{names.LabelSLO, "names from `slos` of `token_latency`, and " + quoted([]string{names.SLOAll})},
		{names.LabelVerdict, quoted(verdicts) + "; of `compare`: " + quoted([]string{string(canary.Pass), string(canary.Fail), string(canary.Undecided)})},
		{names.LabelKind, quoted([]string{capacity.Requests.String(), capacity.OutputTokens.String(), capacity.PromptTokens.String()})},
		{names.LabelPercentile, "`percentiles` of the exporter, by default " + quoted(percentiles)},
		{names.LabelWindow, "of percentiles: `windows` of the exporter, by default " + quoted(windows) + "; of burn rates: " + quoted(burnWindows)},
	} {
		fmt.Fprintf(&table, "| `%s` | %s |\n", row[0], row[1])
	}
	return table.String()
}

// boundsTable has one row for the histograms that share their bounds.
func boundsTable() string {
	var bounds []string
	metrics := map[string][]string{} // by bounds
	for _, id := range numbers.Histograms {
		var all []string
		for _, bound := range id.Row().Bounds {
			all = append(all, number(bound))
		}
		list := strings.Join(all, ", ")
		if metrics[list] == nil {
			bounds = append(bounds, list)
		}
		metrics[list] = append(metrics[list], strings.TrimPrefix(id.Row().Metric.Name, names.Prefix))
	}
	var table strings.Builder
	table.WriteString("| histograms, without `" + names.Prefix + "` | upper bounds |\n|---|---|\n")
	for _, list := range bounds {
		fmt.Fprintf(&table, "| %s | %s |\n", quoted(metrics[list]), list)
	}
	return table.String()
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// quoted returns the values in backquotes, without empty and repeated ones.
func quoted(values []string) string {
	var all []string
	for _, v := range values {
		if q := "`" + v + "`"; v != "" && !slices.Contains(all, q) {
			all = append(all, q)
		}
	}
	return strings.Join(all, ", ")
}
