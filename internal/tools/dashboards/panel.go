// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"text/template"
)

const docs = "https://github.com/tokenpulse/tokenpulse/blob/main/docs/"

// panel describes a panel, or one for each item of For.
type panel struct {
	Kind, Title, Unit, About string
	Docs                     string // a page and an anchor below docs/
	Size                     [2]int
	For                      []string
	Set                      object // of the dashboard model, beside what its kind has
	Queries                  []query
}

// query is a query of a panel, or one for each item of For. Expr is a template that query.go has
// the functions for. In a table, Legend is the title of a column, and Unit its unit.
type query struct {
	Expr, Legend, Unit string
	For                []string
	Instant, Exemplars bool // an instant query answers for the end of the time range
}

func (p *panel) build(item object) (object, error) {
	title, err := expand(p.Title, item)
	if err != nil {
		return nil, err
	}
	about, err := expand(p.About, item)
	if err != nil {
		return nil, err
	}
	built := merged(common.Kinds["every"])
	for kind := range strings.FieldsSeq(p.Kind) {
		built = merged(built, common.Kinds[kind])
	}
	built = merged(built, object{
		"title": title, "description": about, "fieldConfig": object{"defaults": object{"unit": p.Unit}},
		"links": []any{merged(common.Kinds["link"], object{"url": docs + p.Docs})},
	})
	isTable, targets, columns := built["type"] == "table", []any{}, []query{}
	for _, q := range p.Queries {
		for _, item := range each(q.For, item) {
			expr, err := expand("<<"+q.Expr+">>", item)
			if err != nil {
				return nil, err
			}
			legend, err := expand(q.Legend, item)
			if err != nil {
				return nil, err
			}
			instant := q.Instant || isTable
			target := object{
				"refId": letter(len(targets)), "expr": expr, "legendFormat": legend, "instant": instant, "range": !instant,
				"exemplar": q.Exemplars, "editorMode": "code", "datasource": built["datasource"],
			}
			if isTable {
				target["legendFormat"], target["format"] = "", "table"
				columns = append(columns, query{Legend: legend, Unit: q.Unit})
			}
			if built["type"] == "heatmap" {
				target["format"] = "heatmap"
				built = merged(built, object{"options": object{"yAxis": object{"unit": p.Unit}}})
			}
			targets = append(targets, target)
		}
	}
	built["targets"] = targets
	if isTable {
		built = merged(built, tableOf(columns))
	}
	return merged(built, p.Set), nil
}

func letter(i int) string { return string(rune('A' + i)) }

// tableOf returns what makes a table with a row for each value of the labels that the queries
// group by. The first column sorts it.
func tableOf(columns []query) object {
	names, order, units := object{}, object{}, []any{}
	for i, label := range common.Columns {
		for name, title := range label {
			names[name], order[name] = title, i
		}
	}
	for i, c := range columns {
		value := "Value #" + letter(i)
		names[value], order[value] = c.Legend, len(common.Columns)+i
		units = append(units, object{
			"matcher": object{"id": "byName", "options": c.Legend}, "properties": []any{object{"id": "unit", "value": c.Unit}},
		})
	}
	return object{
		"fieldConfig": object{"overrides": units},
		"options":     object{"sortBy": []any{object{"displayName": columns[0].Legend, "desc": true}}},
		"transformations": []any{
			object{"id": "merge", "options": object{}},
			object{"id": "organize", "options": object{
				"excludeByName": object{"Time": true, "__name__": true, "job": true}, "indexByName": order, "renameByName": names,
			}},
		},
	}
}

// expand fills in a template, whose actions stand between << and >>: Grafana's own use braces.
func expand(text string, item object) (string, error) {
	t, err := template.New("text").Delims("<<", ">>").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	var filled strings.Builder
	err = t.Execute(&filled, item)
	return filled.String(), err
}
