// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed tap.md.tmpl
var tapTemplate string

// The cost of the tap stands between these lines of its README.
const costBegin, costEnd = "<!-- cost:begin -->", "<!-- cost:end -->"

// documentTap writes the measured cost into the README of the tap.
func documentTap(o options, cpu, turns []tapMeasured) {
	many := turns[len(turns)-1]
	rss := func(proxy string) string { return number(many.of(proxy, perStream)) }
	var cost strings.Builder
	try(template.Must(template.New("tap").Parse(tapTemplate)).Execute(&cost, map[string]any{
		"date": time.Now().UTC().Format(time.DateOnly), "processor": processorName(), "cores": runtime.NumCPU(), "load": number(o.load), "rounds": o.rounds,
		"cpu": cpuTable(cpu), "ratios": ratioTable(cpu), "http1": turns[0].table(latencyColumns...), "http2": turns[1].table(latencyColumns...),
		"tapRSS": rss(tapPath), "plainRSS": rss(plainProxy), "nginxRSS": rss(nginxProxy), "streams": many.load.streams,
	}))
	file := filepath.Join(o.document, "README.md")
	before, rest, begins := strings.Cut(string(must(os.ReadFile(file))), costBegin)
	_, after, ends := strings.Cut(rest, costEnd)
	if !begins || !ends {
		try(fmt.Errorf("%s has no lines %s and %s; add them where the tables belong", file, costBegin, costEnd))
	}
	try(os.WriteFile(file, []byte(before+costBegin+"\n"+aligned(cost.String())+costEnd+after), 0o600))
}

var (
	latencyColumns = []string{chunk50, chunk99, first50, first99}
	memoryColumns  = []string{peakRSS, perStream}
)

// cpuTable shows the CPU time per chunk of each proxy, by load.
func cpuTable(measured []tapMeasured) string {
	header := []string{cpuPerChunk}
	for _, m := range measured {
		header = append(header, m.load.String())
	}
	var rows [][]string
	for _, p := range measured[0].proxies {
		row := []string{p.name}
		for _, m := range measured {
			row = append(row, number(m.of(p.name, cpuPerChunk)))
		}
		rows = append(rows, row)
	}
	return table(header, rows)
}

// ratioTable shows what the tap takes as a multiple of other proxies, with the spread of the rounds.
func ratioTable(measured []tapMeasured) string {
	var rows [][]string
	for _, m := range measured {
		row := []string{m.load.String()}
		for _, than := range []string{collectorProxy, plainProxy} {
			ratios := m.ratios(cpuPerChunk, tapPath, than)
			row = append(row, number(median(ratios))+" ("+spread(ratios)+")")
		}
		rows = append(rows, row)
	}
	return table([]string{"CPU time of `token_tap`", "of the proxy with `confighttp`", "of `httputil.ReverseProxy`"}, rows)
}

// ratios returns the ratio of two proxies in each round.
func (m tapMeasured) ratios(column, proxy, than string) (values []float64) {
	for round := range m.results[proxy] {
		values = append(values, m.added(proxy, column, round)/m.added(than, column, round))
	}
	return values
}

// of returns the median of a column over the rounds.
func (m tapMeasured) of(proxy, column string) float64 {
	var values []float64
	for round := range m.results[proxy] {
		values = append(values, m.added(proxy, column, round))
	}
	return median(values)
}

// added returns a column in one round. Of latencies, it is what the proxy adds to those without a proxy.
func (m tapMeasured) added(proxy, column string, round int) float64 {
	value := m.results[proxy][round][column]
	if slices.Contains([]string{chunk50, chunk99, first50, first99}, column) {
		value -= m.results[noProxy][round][column]
	}
	return value
}

// table shows the median of each column for the proxies.
func (m tapMeasured) table(columns ...string) string {
	var rows [][]string
	for _, p := range m.proxies {
		if p.name == noProxy {
			continue
		}
		row := []string{p.name}
		for _, column := range columns {
			row = append(row, number(m.of(p.name, column)))
		}
		rows = append(rows, row)
	}
	return table(append([]string{m.load.String()}, columns...), rows)
}
