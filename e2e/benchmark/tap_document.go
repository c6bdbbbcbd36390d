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

// documentTap writes the measured cost into the README of the tap. Only few streams leave cores
// idle, so that latencies are those of the proxies.
func documentTap(o options, measured []tapMeasured) {
	few, many := measured[0], measured[len(measured)-1]
	// Chunks that a busy proxy reads together cost less, so those of few streams count.
	cores := func(proxy string) string {
		return fmt.Sprintf("%.0f", few.of(proxy, func(r tapResult) float64 { return r.cpu })*float64(many.load.streams*few.load.perSecond)/1e6)
	}
	var cost strings.Builder
	try(template.Must(template.New("tap").Parse(tapTemplate)).Execute(&cost, map[string]any{
		"date": time.Now().UTC().Format(time.DateOnly), "processor": processorName(), "cores": runtime.NumCPU(), "rounds": o.rounds,
		"chunks": few.table(chunkColumns), "memory": many.table(memoryColumns), "streams": many.load.streams, "perSecond": few.load.perSecond,
		"tapCores": cores(tapPath), "nginxCores": cores(nginxProxy),
	}))
	file := filepath.Join(o.document, "README.md")
	before, rest, begins := strings.Cut(string(must(os.ReadFile(file))), costBegin)
	_, after, ends := strings.Cut(rest, costEnd)
	if !begins || !ends {
		try(fmt.Errorf("%s has no lines %s and %s; add them where the tables belong", file, costBegin, costEnd))
	}
	try(os.WriteFile(file, []byte(before+costBegin+"\n"+aligned(cost.String())+costEnd+after), 0o600))
}

// tapColumn is a number of each proxy.
type tapColumn struct {
	name  string
	added bool // the number without a proxy is subtracted
	value func(tapResult) float64
}

var chunkColumns = []tapColumn{
	{"chunk p50, µs", true, func(r tapResult) float64 { return r.chunk50 }},
	{"chunk p99, µs", true, func(r tapResult) float64 { return r.chunk99 }},
	{"first chunk p50, µs", true, func(r tapResult) float64 { return r.first50 }},
	{"first chunk p99, µs", true, func(r tapResult) float64 { return r.first99 }},
	{"CPU per chunk, µs", false, func(r tapResult) float64 { return r.cpu }},
}

var memoryColumns = []tapColumn{
	{"peak RSS, MiB", false, func(r tapResult) float64 { return r.memory }},
	{"RSS per stream, KiB", false, func(r tapResult) float64 { return r.perStream }},
}

// of returns the median of a number over the rounds.
func (m tapMeasured) of(proxy string, value func(tapResult) float64) float64 {
	var values []float64
	for _, result := range m.results[proxy] {
		values = append(values, value(result))
	}
	return median(values)
}

// table shows the median of each number of the proxies.
func (m tapMeasured) table(columns []tapColumn) string {
	header := []string{m.load.String()}
	for _, c := range columns {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, p := range m.proxies {
		if p.arguments == nil {
			continue // a direct connection
		}
		row := []string{p.name}
		for _, c := range columns {
			round := -1
			row = append(row, number(m.of(p.name, func(r tapResult) float64 {
				if round++; c.added {
					return c.value(r) - c.value(m.results[noProxy][round])
				}
				return c.value(r)
			})))
		}
		rows = append(rows, row)
	}
	return table(header, rows)
}
