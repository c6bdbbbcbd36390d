// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Units of Grafana.
const (
	seconds           = "s"
	ratio             = "percentunit"
	number            = "short"
	requestsPerSecond = "reqps"
	tokensPerSecond   = "count:tokens/s"
	tokenCount        = "count:tokens"
)

const docs = "https://github.com/tokenpulse/tokenpulse/blob/main/docs/"

// panel is what all kinds of panels have. Its kind holds the rest.
type panel struct {
	title, about string
	docs         string
	unit         string
	width        uint32
	height       uint32
	kind         cog.Builder[dashboard.Panel]
	targets      []target
}

// target is a query of a panel. An instant query answers for the end of the time range.
type target struct {
	expression, legend string
	instant            bool
	exemplars          bool
	format             prometheus.PromQueryFormat
}

// show returns a panel. docs is a page and an anchor below docs/.
func show(kind cog.Builder[dashboard.Panel], title, unit, docs, about string, targets ...target) panel {
	return panel{title: title, about: about, docs: docs, unit: unit, kind: kind, targets: targets}
}

func (p panel) sized(width, height uint32) panel {
	p.width, p.height = width, height
	return p
}

// line is a query whose series are drawn over time.
func line(expression, legend string) target { return target{expression: expression, legend: legend} }

// now is a query for the end of the time range.
func now(expression, legend string) target {
	return target{expression: expression, legend: legend, instant: true}
}

// intoTable is a query whose series are rows of a table.
func intoTable(expression string) target {
	return target{expression: expression, instant: true, format: prometheus.PromQueryFormatTable}
}

func (t target) asHeatmap() target {
	t.format = prometheus.PromQueryFormatHeatmap
	return t
}

var dataSource = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

func (p panel) Build() (dashboard.Panel, error) {
	built, err := p.kind.Build()
	if err != nil {
		return built, fmt.Errorf("panel %q: %w", p.title, err)
	}
	link, err := dashboard.NewDashboardLinkBuilder("Documentation").Type(dashboard.DashboardLinkTypeLink).
		Url(docs + p.docs).TargetBlank(true).Build()
	if err != nil {
		return built, err
	}
	link.Placement = nil
	built.Title, built.Description, built.Links = &p.title, &p.about, []dashboard.DashboardLink{link}
	built.Datasource = &dataSource
	built.GridPos = &dashboard.GridPos{W: p.width, H: p.height}
	if built.FieldConfig == nil {
		built.FieldConfig = dashboard.NewFieldConfigSource()
	}
	built.FieldConfig.Defaults.Unit = &p.unit
	for i, t := range p.targets {
		query := prometheus.NewDataqueryBuilder().Expr(t.expression).LegendFormat(t.legend).
			RefId(string(rune('A' + i))).EditorMode(prometheus.QueryEditorModeCode).Datasource(dataSource).Exemplar(t.exemplars)
		if t.format != "" {
			query.Format(t.format)
		}
		if t.instant {
			query.Instant()
		} else {
			query.Range()
		}
		ready, err := query.Build()
		if err != nil {
			return built, fmt.Errorf("query of panel %q: %w", p.title, err)
		}
		built.Targets = append(built.Targets, ready)
	}
	return built, nil
}

// lines is a graph over time.
func lines() *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).Min(0).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).
			ShowLegend(true).Calcs([]string{"lastNotNull", "max"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
}

// stacked is a graph over time whose values add up.
func stacked() *timeseries.PanelBuilder {
	return lines().FillOpacity(30).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// onRightAxis draws the series of a query against an axis of its own.
func onRightAxis(of *timeseries.PanelBuilder, refID, unit string) *timeseries.PanelBuilder {
	return of.OverrideByQuery(refID, append([]dashboard.DynamicConfigValue{
		{Id: "unit", Value: unit},
		{Id: "custom.axisPlacement", Value: "right"},
	}, dashed...))
}

// dashed draws lines that others are compared with.
var dashed = []dashboard.DynamicConfigValue{
	{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 6}}},
	{Id: "custom.fillOpacity", Value: 0},
}

// tile shows one number and its course. Without a value it shows the given text. Steps
// color the number: a value at or above a step has its color.
func tile(noValue string, steps ...dashboard.Threshold) *stat.PanelBuilder {
	builder := stat.NewPanelBuilder().GraphMode(common.BigValueGraphModeArea).ColorMode(common.BigValueColorModeNone).Orientation(common.VizOrientationAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).NoValue(noValue)
	if len(steps) > 0 {
		builder.ColorMode(common.BigValueColorModeValue).Thresholds(thresholds(steps...)).
			ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds))
	}
	return builder
}

func step(from float64, color string) dashboard.Threshold {
	return dashboard.Threshold{Value: &from, Color: color}
}

// lowest colors values below the first step.
func lowest(color string) dashboard.Threshold { return dashboard.Threshold{Color: color} }

func thresholds(steps ...dashboard.Threshold) *dashboard.ThresholdsConfigBuilder {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// cells is a heatmap of buckets over time.
func cells(unit string) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().CellGap(0).ShowLegend().
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Blues").
			Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64)).
		FilterValues(heatmap.NewFilterValueRangeBuilder().Le(1e-9)).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(unit).AxisPlacement(common.AxisPlacementLeft)).
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true))
}

// column is a query whose values fill a column of a table.
type column struct {
	title, unit, expression string
}

// columnLabels are the labels that tables can have, in the order of their columns, and
// the titles of these.
var columnLabels = [][2]string{
	{"alertname", "Alert"},
	{"alertstate", "State"},
	{"severity", "Severity"},
	{"slo", "SLO"},
	{"percentile", "Percentile"},
	{"phase", "Phase"},
	{"gen_ai_request_model", "Model"},
	{"service_name", "Service"},
	{"gen_ai_provider_name", "Provider"},
	{"gen_ai_operation_name", "Operation"},
	{"server_address", "Engine"},
	{"service_version", "Version"},
	{"host_name", "Host"},
	{"instance", "Instance"},
	{"vantage", "Vantage"},
}

// rowsOf is a panel with such a table.
func rowsOf(title, unit, docs, about string, columns ...column) panel {
	kind, targets := rows(columns...)
	return show(kind, title, unit, docs, about, targets...)
}

// rows is a table with a row for each value of the labels that the queries group by. The
// first column sorts it.
func rows(columns ...column) (*table.PanelBuilder, []target) {
	builder := table.NewPanelBuilder().ShowHeader(true).Filterable(true).NoValue("no requests").
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}))
	names, order := map[string]any{}, map[string]any{}
	for i, label := range columnLabels {
		names[label[0]], order[label[0]] = label[1], i
	}
	var targets []target
	for i, c := range columns {
		value := "Value #" + string(rune('A'+i))
		names[value], order[value] = c.title, len(columnLabels)+i
		builder.OverrideByName(c.title, []dashboard.DynamicConfigValue{{Id: "unit", Value: c.unit}})
		targets = append(targets, intoTable(c.expression))
	}
	return builder.
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]any{"Time": true, "__name__": true, "job": true}, "indexByName": order, "renameByName": names,
		}}).
		SortBy([]cog.Builder[common.TableSortByFieldState]{
			common.NewTableSortByFieldStateBuilder().DisplayName(columns[0].title).Desc(true),
		}), targets
}
