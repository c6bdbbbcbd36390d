// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// grafanaDashboard is what the tests read of a dashboard's file.
type grafanaDashboard struct {
	file, text  string // of the test
	UID, Title  string
	Description string
	Tags        []string
	Links       []grafanaLink
	Panels      []grafanaPanel
	Templating  struct{ List []grafanaVariable }
	Annotations struct {
		List []struct {
			Name, TitleFormat string
			Target            grafanaTarget
		}
	}
}

type grafanaLink struct{ Title, Type, URL string }

type grafanaPanel struct {
	ID                       int
	Type, Title, Description string
	Links                    []grafanaLink
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Options                  struct{ YAxis struct{ Unit string } }
	Targets                  []grafanaTarget
	Transformations          []struct {
		ID      string
		Options struct{ IndexByName map[string]int }
	}
}

type grafanaTarget struct {
	RefID, Expr, LegendFormat string
	Instant, Range, Exemplar  bool
	Datasource                struct{ UID string }
}

type grafanaVariable struct {
	Name, Label, Description, Type, Query, AllValue string
	Options                                         []struct{ Value string }
	Sort                                            int
	Current                                         struct{ Text, Value string }
}

// dashboards returns the dashboards of examples/grafana, by file name.
func dashboards(t *testing.T) map[string]grafanaDashboard {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Root(t), "examples", "grafana", "*.json"))
	require.NoError(t, err)
	all := map[string]grafanaDashboard{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		d := grafanaDashboard{file: strings.TrimSuffix(filepath.Base(path), ".json"), text: string(content)}
		require.NoError(t, json.Unmarshal(content, &d), path)
		all[d.file] = d
	}
	require.Len(t, all, 5)
	return all
}

const (
	rowPanel = "row"
	docsPage = "https://github.com/tokenpulse/tokenpulse/blob/main/"
)

var (
	usedVariable = regexp.MustCompile(`\$\{?(\w+)`)
	// builtIn are variables that Grafana defines.
	builtIn = map[string]bool{"__rate_interval": true, "__range": true, "__all": true}
)

func TestDashboards_EveryPanelIsCompleteAndLinksToItsDocumentation(t *testing.T) {
	for file, d := range dashboards(t) {
		t.Run(file, func(t *testing.T) {
			require.Equal(t, "tokenpulse-"+file, d.UID)
			require.NotEmpty(t, d.Title)
			require.NotEmpty(t, d.Description)
			require.Equal(t, []string{"tokenpulse"}, d.Tags, "the links between dashboards use the tag")
			requireDocumentation(t, d.Links[2].URL)
			// Only the lowest step of thresholds is null: elsewhere, Grafana expects a list or an object.
			require.NotContains(t, strings.ReplaceAll(d.text, `"value": null`, ""), "null")
			ids, titles, cells := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
			for _, p := range d.Panels {
				require.NotEmpty(t, p.Title, "panel %d", p.ID)
				require.False(t, titles[p.Title], "two panels are called %q", p.Title)
				require.False(t, ids[p.ID], "two panels have the ID %d", p.ID)
				titles[p.Title], ids[p.ID] = true, true
				require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
				for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
					for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
						require.Empty(t, cells[[2]int{x, y}], "%q covers another panel", p.Title)
						cells[[2]int{x, y}] = p.Title
					}
				}
				if p.Type != rowPanel {
					requireComplete(t, p)
				}
			}
		})
	}
}

func requireComplete(t *testing.T, p grafanaPanel) {
	t.Helper()
	require.Regexp(t, `^[A-Z].*\.$`, p.Description, "description of %q", p.Title)
	require.NotEmpty(t, p.FieldConfig.Defaults.Unit, "unit of %q", p.Title)
	if p.Type == "heatmap" {
		require.Equal(t, p.FieldConfig.Defaults.Unit, p.Options.YAxis.Unit, "unit of the axis of %q", p.Title)
	}
	require.Len(t, p.Links, 1, p.Title)
	requireDocumentation(t, p.Links[0].URL)
	require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
	require.NotEmpty(t, p.Targets, p.Title)
	for _, target := range p.Targets {
		require.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
		require.NotEqual(t, target.Instant, target.Range, "%s of %q", target.RefID, p.Title)
		if p.Type == "timeseries" {
			require.NotEmpty(t, target.LegendFormat, "%s of %q", target.RefID, p.Title)
		}
		if target.Exemplar {
			require.True(t, target.Range, "exemplars are on graphs over time: %s of %q", target.RefID, p.Title)
		}
	}
}

// requireDocumentation checks that a link leads to a heading of a page in docs.
func requireDocumentation(t *testing.T, url string) {
	t.Helper()
	file, found := strings.CutPrefix(url, docsPage)
	require.True(t, found, url)
	page, anchor, _ := strings.Cut(file, "#")
	text := markdown.Read(t, page)
	if anchor != "" {
		require.True(t, markdown.Anchors(text)[anchor], "%s has no heading %q", page, anchor)
	}
}

// Grafana moves columns without an index to the end: labels would follow the numbers.
func TestDashboards_TablesBeginWithTheirLabels(t *testing.T) {
	grouped, tables := regexp.MustCompile(`by \(([^)]*)\)`), 0
	for _, d := range dashboards(t) {
		var splits []string
		for _, v := range d.Templating.List {
			for _, o := range v.Options {
				if v.Name == "by" {
					splits = append(splits, o.Value)
				}
			}
		}
		for _, p := range d.Panels {
			if p.Type != "table" {
				continue
			}
			tables++
			require.Equal(t, "organize", p.Transformations[1].ID, p.Title)
			order := p.Transformations[1].Options.IndexByName
			for _, target := range p.Targets {
				for _, labels := range grouped.FindAllStringSubmatch(strings.ReplaceAll(target.Expr, "$by", strings.Join(splits, ", ")), -1) {
					for label := range strings.SplitSeq(labels[1], ", ") {
						if label != "le" {
							require.Contains(t, order, label, p.Title)
							require.Less(t, order[label], order["Value #A"], p.Title)
						}
					}
				}
			}
		}
	}
	require.Greater(t, tables, 5)
}

func TestDashboards_EveryVariableIsDefinedAndUsed(t *testing.T) {
	for file, d := range dashboards(t) {
		t.Run(file, func(t *testing.T) {
			defined := map[string]bool{}
			for _, v := range d.Templating.List {
				require.False(t, defined[v.Name], "two variables are called %q", v.Name)
				require.NotEmpty(t, v.Label, v.Name)
				require.NotEmpty(t, v.Description, v.Name)
				defined[v.Name] = true
			}
			used := map[string]bool{}
			for _, match := range usedVariable.FindAllStringSubmatch(d.text, -1) {
				require.True(t, defined[match[1]] || builtIn[match[1]], "no variable is called %q", match[1])
				used[match[1]] = true
			}
			for name := range defined {
				require.True(t, used[name], "no panel uses the variable %q", name)
			}
			for _, name := range []string{"datasource", "service", "provider", "model", "operation", "vantage"} {
				require.True(t, defined[name], "the dashboard lacks the variable %q", name)
			}
		})
	}
}

// Every latency can be seen as percentiles, as a heatmap and by the chosen label.
func TestDashboards_ShowEveryDefaultMetric(t *testing.T) {
	var queries strings.Builder
	for _, d := range dashboards(t) {
		queries.WriteString(d.text)
	}
	for _, name := range regexp.MustCompile("(?m)^\\| `tokenpulse\\.[^|]*\\| `(tokenpulse_\\w+)`.*\\| on (in the exporter )?\\|").FindAllStringSubmatch(markdown.Read(t, "docs/metrics.md"), -1) {
		metric := name[1]
		if metric == "tokenpulse_slo_burn_rate" {
			continue // panels compute it from counters
		}
		require.Regexp(t, `\b`+metric+`\b`, queries.String(), "no panel shows %s", metric)
	}
}

// named returns a panel by its title.
func (d grafanaDashboard) named(t *testing.T, title string) grafanaPanel {
	t.Helper()
	for _, p := range d.Panels {
		if p.Title == title {
			return p
		}
	}
	require.Fail(t, fmt.Sprintf("dashboard %s has no panel %q", d.file, title))
	return grafanaPanel{}
}

// The files that provision Grafana link exemplars to a data source that exists.
func TestDashboards_ProvisioningLinksExemplarsToTraces(t *testing.T) {
	var sources struct {
		Datasources []struct {
			UID, Type string
			JSONData  struct {
				ExemplarTraceIDDestinations []struct{ Name, DatasourceUID string }
			}
		}
	}
	provisioning := filepath.Join(testenv.Root(t), "examples", "grafana", "provisioning")
	parse(t, filepath.Join(provisioning, "datasources", "tokenpulse.yaml"), &sources)
	require.Len(t, sources.Datasources, 2)
	link := sources.Datasources[0].JSONData.ExemplarTraceIDDestinations[0]
	require.Equal(t, "trace_id", link.Name)
	require.Equal(t, sources.Datasources[1].UID, link.DatasourceUID)

	var folders struct {
		Providers []struct{ Options struct{ Path string } }
	}
	parse(t, filepath.Join(provisioning, "dashboards", "tokenpulse.yaml"), &folders)
	require.Contains(t, markdown.Read(t, "docs/grafana.md"), "cp examples/grafana/*.json "+folders.Providers[0].Options.Path+"/\n")
}
