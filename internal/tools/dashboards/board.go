// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// object is a JSON object of Grafana's dashboard model.
type object = map[string]any

// common is what all dashboards share: common.yaml.
var common struct {
	Dashboard object            // the keys of each dashboard
	Variables map[string]object // by name
	Kinds     map[string]object // of panels, by name
	Items     map[string]object // that panels and queries are repeated for, by name
	Columns   []map[string]string
}

// board is a dashboard. Its file's name is also part of its UID, which links contain.
type board struct {
	file               string
	Title, Description string
	Variables          []string
	Rows               []row
}

// row has panels of one size, unless a panel has its own.
type row struct {
	Title  string
	Size   [2]int // width and height
	Panels []panel
}

func (b *board) build() (object, error) {
	variables := []any{}
	for _, name := range b.Variables {
		variables = append(variables, variable(name))
	}
	built := merged(common.Dashboard, object{
		"title": "tokenpulse: " + b.Title, "uid": "tokenpulse-" + b.file, "description": b.Description,
		"templating": object{"list": variables},
	})
	panels, below := []any{}, 0
	add := func(p object, x, y, width, height int) {
		p["id"], p["gridPos"] = len(panels)+1, object{"x": x, "y": y, "w": width, "h": height}
		panels, below = append(panels, p), max(below, y+height)
	}
	for _, r := range b.Rows {
		add(object{"collapsed": false, "panels": []any{}, "title": r.Title, "type": "row"}, 0, below, 24, 1)
		x, y := 0, below
		for _, p := range r.Panels {
			size := r.Size
			if p.Size != [2]int{} {
				size = p.Size
			}
			for _, item := range each(p.For, nil) {
				ready, err := p.build(item)
				if err != nil {
					return nil, fmt.Errorf("panel %q: %w", p.Title, err)
				}
				add(ready, x, y, size[0], size[1])
				if x += size[0]; x >= 24 {
					x, y = 0, below
				}
			}
		}
	}
	built["panels"] = panels
	return built, nil
}

// variable returns a variable by its name. A choice may follow with the value that is selected
// at first: by=server_address.
func variable(name string) object {
	name, selected, _ := strings.Cut(name, "=")
	built := merged(common.Variables["every"], common.Variables[name], object{"name": name})
	choices, ok := built["choices"].(string)
	if !ok {
		return built
	}
	delete(built, "choices")
	options := []any{}
	for choice := range strings.SplitSeq(choices, ", ") {
		shown, value, _ := strings.Cut(choice, " : ")
		option := object{"text": shown, "value": value, "selected": value == selected}
		if options = append(options, option); value == selected {
			built["current"] = option
		}
	}
	built["query"], built["options"] = choices, options
	return built
}

// each returns the items of a list of names, each with all items of the next lists.
func each(lists []string, outer object) []object {
	if len(lists) == 0 {
		return []object{outer}
	}
	var all []object
	for name := range strings.FieldsSeq(lists[0]) {
		all = append(all, each(lists[1:], merged(outer, common.Items[name]))...)
	}
	return all
}

// merged returns an object with the keys of all. Objects in objects are merged, too; of other
// values, the last counts.
func merged(all ...object) object {
	sum := object{}
	for _, o := range all {
		for key, v := range o {
			if inner, ok := v.(object); ok {
				before, _ := sum[key].(object)
				v = merged(before, inner)
			}
			sum[key] = v
		}
	}
	return sum
}
