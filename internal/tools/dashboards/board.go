// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// board is a dashboard. Its file's name is also part of its UID, which links contain.
type board struct {
	file, title, about string
	variables          []cog.Builder[dashboard.VariableModel]
	rows               []row
}

// row has panels of one size, unless a panel has its own.
type row struct {
	title         string
	width, height uint32
	panels        []panel
}

const tag = "tokenpulse"

func (b board) build() (dashboard.Dashboard, error) {
	builder := dashboard.NewDashboardBuilder("tokenpulse: "+b.title).Uid("tokenpulse-"+b.file).Description(b.about).
		Tags([]string{tag}).Time("now-1h", "now").Refresh("30s").Timezone("browser").Editable().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Variables(append([]cog.Builder[dashboard.VariableModel]{dataSourceVariable}, append(b.variables, pageVariable)...)).
		Annotation(firing).Annotation(newVersion).
		Link(dashboard.NewDashboardLinkBuilder("Dashboards").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{tag}).
			AsDropdown(true).KeepTime(true).IncludeVars(true)).
		Link(dashboard.NewDashboardLinkBuilder("Live page").Type(dashboard.DashboardLinkTypeLink).Url("${live_page}").
			Icon("bolt").Tooltip("The Collector's own page, with the slowest requests").TargetBlank(true)).
		Link(dashboard.NewDashboardLinkBuilder("Runbook").Type(dashboard.DashboardLinkTypeLink).Url(docs + "runbook.md#from-page-to-trace").
			Icon("doc").Tooltip("From an alert to its cause").TargetBlank(true))
	id := uint32(0)
	for _, r := range b.rows {
		id++
		builder.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for _, p := range r.panels {
			id++
			if p.width == 0 {
				p = p.sized(r.width, r.height)
			}
			builder.WithPanel(numbered{p, id})
		}
	}
	built, err := builder.Build()
	// The SDK hides links and annotations in a menu by default.
	for i := range built.Links {
		built.Links[i].Placement = nil
	}
	for i := range built.Annotations.List {
		built.Annotations.List[i].Placement = nil
	}
	return built, err
}

// numbered gives a panel its ID. Links to a panel contain it.
type numbered struct {
	panel
	id uint32
}

func (n numbered) Build() (dashboard.Panel, error) {
	built, err := n.panel.Build()
	built.Id = &n.id
	return built, err
}

// firing marks when alerts of examples/prometheus/rules.yaml fire.
var firing = annotation("Alerts", "red", `ALERTS{alertname=~"Token.*", alertstate="firing"}`)

// newVersion marks the first 10 minutes of each version of a service. It needs the
// dimension service.version.
var newVersion = annotation("New versions", "blue",
	`count by (service_name, service_version) (tokenpulse_requests_total{service_version!=""})`+
		` unless count by (service_name, service_version) (tokenpulse_requests_total{service_version!=""} offset 10m)`)

var annotationTexts = map[string]map[string]string{
	"Alerts":       {"titleFormat": "{{alertname}}", "textFormat": "{{slo}} {{gen_ai_request_model}} {{service_name}}", "tagKeys": "severity,slo"},
	"New versions": {"titleFormat": "{{service_name}} {{service_version}}", "textFormat": "first requests of this version", "tagKeys": "service_name"},
}

func annotation(name, color, expression string) *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(dataSource).Enable(true).IconColor(color).
		Target(prometheus.NewDataqueryBuilder().Expr(expression).RefId("Anno").Range())
}
