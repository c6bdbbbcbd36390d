// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
)

// grafana stands in for Grafana: it replaces the variables of a dashboard as Grafana
// does when a user opens it, and asks Prometheus at a time, over the 5 minutes before.
type grafana struct {
	*promserver.Server
	at     time.Time
	values map[string]string
	texts  map[string]string
	empty  []string // variables without values
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// open resolves the variables of a dashboard from first to last. Those in chosen have
// the given values.
func open(t *testing.T, p *promserver.Server, d grafanaDashboard, at time.Time, chosen map[string]string) *grafana {
	t.Helper()
	g := &grafana{
		Server: p, at: at,
		values: map[string]string{"__rate_interval": "5m", "__range": "5m", "datasource": "prometheus"},
		texts:  map[string]string{},
	}
	for _, v := range d.Templating.List {
		value, text := v.Current.Value, v.Current.Text
		if v.Type == "query" {
			found := g.labelValues(t, v)
			switch value {
			case "$__all":
				value = v.AllValue
			case "":
				value, text = found[0], found[0]
			}
		}
		if choice, ok := chosen[v.Name]; ok {
			value = choice
		}
		if v.Type != "datasource" {
			g.values[v.Name], g.texts[v.Name] = value, text
		}
	}
	return g
}

// labelValues asks for the values of a variable, in its order.
func (g *grafana) labelValues(t *testing.T, v grafanaVariable) []string {
	t.Helper()
	query := labelValues.FindStringSubmatch(g.replace(v.Query))
	require.Len(t, query, 3, "query of variable %s: %s", v.Name, v.Query)
	var answer struct{ Data []string }
	g.Ask(t, "label/"+query[2]+"/values", url.Values{"match[]": {query[1]}, "start": {strconv.FormatInt(g.at.Add(-24*time.Hour).Unix(), 10)}}, &answer)
	if len(answer.Data) == 0 {
		g.empty = append(g.empty, v.Name)
		return []string{""}
	}
	slices.Sort(answer.Data)
	if v.Sort == 2 {
		slices.Reverse(answer.Data)
	}
	return answer.Data
}

var variableUse = regexp.MustCompile(`\$(?:(\w+)|\{(\w+)(:text)?\})`)

// replace inserts the values of variables into a query.
func (g *grafana) replace(query string) string {
	return variableUse.ReplaceAllStringFunc(query, func(use string) string {
		parts := variableUse.FindStringSubmatch(use)
		if parts[3] != "" {
			return g.texts[parts[2]]
		}
		if value, ok := g.values[parts[1]+parts[2]]; ok {
			return value
		}
		return use
	})
}

// samples returns the finite values of a target by labels: at the end of the range, or
// the last within it. A native histogram counts as its number of values.
func (g *grafana) samples(t *testing.T, target grafanaTarget) answers {
	t.Helper()
	what, parameters := "query", url.Values{"query": {g.replace(target.Expr)}}
	if target.Range {
		what = "query_range"
		parameters.Set("start", strconv.FormatInt(g.at.Unix()-2, 10))
		parameters.Set("end", strconv.FormatInt(g.at.Unix(), 10))
		parameters.Set("step", "1")
	} else {
		parameters.Set("time", strconv.FormatInt(g.at.Unix(), 10))
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric     map[string]string
				Value      [2]any
				Values     [][2]any
				Histograms [][2]json.RawMessage
			}
		}
	}
	g.Ask(t, what, parameters, &answer)
	all := answers{}
	for _, series := range answer.Data.Result {
		value := math.NaN()
		switch {
		case len(series.Values) > 0:
			value = promserver.Number(t, series.Values[len(series.Values)-1])
		case len(series.Histograms) > 0:
			var histogram struct{ Count string }
			require.NoError(t, json.Unmarshal(series.Histograms[len(series.Histograms)-1][1], &histogram))
			value = promserver.Parsed(t, histogram.Count)
		case series.Value[1] != nil:
			value = promserver.Number(t, series.Value)
		}
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			all[labelText(series.Metric)] = value
		}
	}
	return all
}

// panel returns the answers of a panel's queries by RefID.
func (g *grafana) panel(t *testing.T, p grafanaPanel) map[string]answers {
	t.Helper()
	all := map[string]answers{}
	for _, target := range p.Targets {
		all[target.RefID] = g.samples(t, target)
	}
	return all
}

// requireData checks that every query of a dashboard returns data: of variables, panels,
// exemplars and annotations. Queries that contain except may return nothing.
func (g *grafana) requireData(t *testing.T, d grafanaDashboard, except string) (queries int) {
	t.Helper()
	require.Empty(t, g.empty, "variables without values")
	for _, a := range d.Annotations.List {
		require.NotEmpty(t, g.samples(t, a.Target), "annotation %q: %s", a.Name, g.replace(a.Target.Expr))
		queries++
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if except != "" && strings.Contains(target.Expr, except) {
				continue
			}
			require.NotEmpty(t, g.samples(t, target), "%s of %q:\n%s", target.RefID, p.Title, g.replace(target.Expr))
			if target.Exemplar {
				require.NotEmpty(t, g.ExemplarTraces(t, g.replace(target.Expr)), "exemplars of %q", p.Title)
			}
			queries++
		}
	}
	return queries
}

// only returns the value of a query with one series.
func (a answers) only(t *testing.T) float64 {
	t.Helper()
	require.Len(t, a, 1, fmt.Sprint(a))
	for _, value := range a {
		return value
	}
	return 0
}
