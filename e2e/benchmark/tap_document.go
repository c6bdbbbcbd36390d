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

// documentTap writes the measured cost into the README of the tap. Only few streams leave cores
// idle, so that latencies are those of the proxies.
func documentTap(o options, measured []tapMeasured) {
	few, many := measured[0], measured[len(measured)-1]
	// Chunks that a busy proxy reads together cost less, so those of few streams count.
	cores := func(proxy string) string {
		return fmt.Sprintf("%.0f", few.of(proxy, cpuPerChunk)*float64(many.load.streams*few.load.perSecond)/1e6)
	}
	rss := func(proxy string) string { return number(many.of(proxy, perStream)) }
	var cost strings.Builder
	try(template.Must(template.New("tap").Parse(tapTemplate)).Execute(&cost, map[string]any{
		"date": time.Now().UTC().Format(time.DateOnly), "processor": processorName(), "cores": runtime.NumCPU(), "load": number(o.load), "rounds": o.rounds,
		"chunks": few.table(chunkColumns...), "tapRSS": rss(tapPath), "plainRSS": rss(plainProxy), "nginxRSS": rss(nginxProxy), "streams": many.load.streams, "perSecond": few.load.perSecond,
		"ratios": tapRatios(measured), "tapCores": cores(tapPath), "nginxCores": cores(nginxProxy),
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
	chunkColumns  = []string{chunk50, chunk99, first50, first99, cpuPerChunk}
	memoryColumns = []string{peakRSS, perStream}
)

// tapRatios shows what the tap costs as a multiple of Go's reverse proxy, with the spread of the rounds.
func tapRatios(measured []tapMeasured) string {
	columns := []string{cpuPerChunk, first50, perStream}
	header := []string{"`token_tap` / `httputil.ReverseProxy`"}
	for _, column := range columns {
		name, _, _ := strings.Cut(column, ",")
		header = append(header, name)
	}
	var rows [][]string
	for _, m := range measured {
		row := []string{m.load.String()}
		for _, column := range columns {
			ratios := m.ratios(column, tapPath, plainProxy)
			row = append(row, number(median(ratios))+" ("+spread(ratios)+")")
		}
		rows = append(rows, row)
	}
	return table(header, rows)
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
	for _, p := range m.proxies[1:] { // the first is a direct connection
		row := []string{p.name}
		for _, column := range columns {
			row = append(row, number(m.of(p.name, column)))
		}
		rows = append(rows, row)
	}
	return table(append([]string{m.load.String()}, columns...), rows)
}
