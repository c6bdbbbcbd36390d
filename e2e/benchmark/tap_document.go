// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"
)

//go:embed tap.md.tmpl
var tapTemplate string

// The cost of the tap stands between these lines of its README.
const costBegin, costEnd = "<!-- cost:begin -->", "<!-- cost:end -->"

// documentTap writes the measured cost into the README of the tap.
func documentTap(o options, measured []tapMeasured) error {
	processor, err := processorName()
	if err != nil {
		return err
	}
	// Only few streams leave cores idle, so that latencies are those of the proxies.
	tables := []string{measured[0].table(chunkColumns)}
	for _, m := range measured[1:] {
		tables = append(tables, m.table(processColumns))
	}
	var cost strings.Builder
	err = template.Must(template.New("tap").Parse(tapTemplate)).Execute(&cost, map[string]any{
		"date": time.Now().UTC().Format(time.DateOnly), "processor": processor, "cores": runtime.NumCPU(), "rounds": o.rounds,
		"tables": tables, "needed": neededTable(measured[0], measured[len(measured)-1]),
	})
	if err != nil {
		return err
	}
	file := filepath.Join(o.document, "README.md")
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(page), costBegin)
	_, after, ends := strings.Cut(rest, costEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %s and %s; add them where the tables belong", file, costBegin, costEnd)
	}
	return os.WriteFile(file, []byte(before+costBegin+"\n"+cost.String()+costEnd+after), 0o600)
}

// Kinds of numbers.
const (
	addedToNone = iota // the number without a proxy is subtracted
	ofProxy            // a connection without a proxy has no such number
	ofAll              // of clients, upstream and proxy together
)

// tapColumn is a number of each proxy.
type tapColumn struct {
	name  string
	kind  int
	value func(tapResult) float64
}

var chunkColumns = []tapColumn{
	{"chunk p50, µs", addedToNone, func(r tapResult) float64 { return r.chunk50 }},
	{"chunk p99, µs", addedToNone, func(r tapResult) float64 { return r.chunk99 }},
	{"first chunk p50, µs", addedToNone, func(r tapResult) float64 { return r.first50 }},
	{"first chunk p99, µs", addedToNone, func(r tapResult) float64 { return r.first99 }},
	{"CPU per chunk, µs", ofProxy, func(r tapResult) float64 { return r.cpu }},
}

var processColumns = []tapColumn{
	{"peak RSS, MiB", ofProxy, func(r tapResult) float64 { return r.memory }},
	{"RSS per stream, KiB", ofProxy, func(r tapResult) float64 { return r.perStream }},
	{"busy cores", ofAll, func(r tapResult) float64 { return r.busy }},
}

func (m tapMeasured) values(p tapProxy, c tapColumn) (values []float64) {
	for round, result := range m.results[p.name] {
		value := c.value(result)
		if c.kind == addedToNone && p.arguments != nil {
			value -= c.value(m.results[noProxy][round])
		}
		values = append(values, value)
	}
	return values
}

// table shows the median and the range of each number.
func (m tapMeasured) table(columns []tapColumn) string {
	header := []string{m.load.String()}
	for _, c := range columns {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, p := range m.proxies {
		row := []string{p.name}
		for _, c := range columns {
			cell := "-"
			if c.kind != ofProxy || p.arguments != nil {
				values := m.values(p, c)
				cell = number(median(values)) + " (" + spread(values) + ")"
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return table(header, rows)
}

// neededTable extrapolates to as many streams as many has, at the rate of few: two cores do
// not carry them. Chunks that a busy proxy reads together cost less, so those of few count.
func neededTable(few, many tapMeasured) string {
	var rows [][]string
	for _, p := range few.proxies {
		if p.arguments == nil {
			continue
		}
		var cores, memory []float64
		for round, r := range few.results[p.name] {
			cores = append(cores, r.cpu/1e6*float64(many.load.streams*few.load.perSecond))
			memory = append(memory, many.results[p.name][round].memory)
		}
		rows = append(rows, []string{p.name, number(median(cores)), number(median(memory))})
	}
	title := fmt.Sprintf("extrapolated to %d streams of %d chunks per second", many.load.streams, few.load.perSecond)
	return table([]string{title, "cores", "peak RSS, MiB"}, rows)
}
