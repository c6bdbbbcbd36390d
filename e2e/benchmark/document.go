// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	_ "embed"
	"fmt"
	"math"
	"os"
	pathpkg "path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
)

// publishedSeries is how many series the cost of publishing is measured with.
const publishedSeries = 10_000

//go:embed performance.md.tmpl
var documentTemplate string

// document takes the remaining measurements, and writes the page, its plot and the ratios.
func document(o options, groups [][]*path, byHeap map[string]results) {
	measured := byHeap[largeHeap]
	page, plot := render(measured, byHeap[defaultHeap], factsOf(o)), measured.plot()
	try(os.WriteFile(filepath.Join(o.document, "performance.md"), []byte(page), 0o600))
	try(os.WriteFile(filepath.Join(o.document, "performance.svg"), []byte(plot), 0o600))
	writeRatios(o.measured, measured.medians(groups))
}

// factsOf returns what the page states beside the costs of paths.
func factsOf(o options) map[string]any {
	idle := idleCores(o, fixed("", 1, 10), everySecond)
	publishing := idleCores(o, fixed("", 50, 10).ofSeries(publishedSeries), "max_series: 20000, "+everySecond)
	return map[string]any{
		"date": time.Now().UTC().Format(time.DateOnly), "cores": runtime.NumCPU(), "rounds": o.rounds, "turns": turns,
		"spans": spansPerRequest, "scraped": scrapedHistograms,
		"processor": processorName(), "load": number(o.load), "builds": buildsOf(slices.Compact([]string{o.collector, o.peers})...),
		"responses": responseTable(o),
		"idle":      number(100 * idle), "publishing": number((publishing - idle) * 1e6 / publishedSeries),
	}
}

func processorName() string { return must(cpu.Info())[0].ModelName }

// render returns the page of what was measured at the large and the default heap.
func render(measured, atDefaultHeap results, facts map[string]any) string {
	functions := template.FuncMap{
		"list":                func(all ...any) []any { return all },
		"fixedLoads":          func() []string { return fixedLoads },
		"mainLoads":           func() []string { return mainLoads },
		"mainKinds":           func() []string { return mainKinds },
		"scrapeKinds":         func() []string { return []string{scrapeSLI, scrapePeer, scrapeSLIText, scrapePeerText} },
		"micros":              measured.micros,
		"ratio":               measured.ratio,
		"more":                measured.more,
		"cores":               measured.cores,
		"ratioAtDefaultHeap":  atDefaultHeap.ratio,
		"microsAtDefaultHeap": atDefaultHeap.micros,
		"beyondReceiving": func(kind, receiving string) string {
			return number(median(measured.withoutReceiving(kind, receiving)) / 1000)
		},
		"bytes": bytesPerToken,
	}
	for name, kind := range map[string]string{
		"wire": wire, "wireSpans": wireSpans, "wireSLOs": wireSLOs, "wireSeries": wireSeries, "wireGRPC": wireGRPC, "wireStream": wireStream,
		"wireNDJSON": wireNDJSON, "everySpan": everySpan, "nop": nop, "nopGRPC": nopGRPC, "spanmetrics": spanmetrics, "foreign": foreign, "peerNop": peerNop,
		"foreignMet": foreignMet, "foreignBreached": foreignBreached, "floor": floor,
	} {
		functions[name] = func() string { return kind }
	}
	page := must(template.New("performance").Option("missingkey=error").Funcs(functions).Parse(documentTemplate))
	var text strings.Builder
	try(page.Execute(&text, facts))
	return aligned(text.String())
}

// measuredModules are the modules whose versions the document lists.
var measuredModules = []string{
	"go.opentelemetry.io/collector/receiver/otlpreceiver",
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector",
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter",
}

// buildsOf returns the Go version and the measured modules of each binary.
func buildsOf(binaries ...string) (builds []string) {
	for _, binary := range binaries {
		info := must(buildinfo.ReadFile(binary))
		parts := []string{fmt.Sprintf("`%s`: %s", binary, info.GoVersion)}
		for _, module := range info.Deps {
			if slices.Contains(measuredModules, module.Path) {
				parts = append(parts, pathpkg.Base(module.Path)+" "+module.Version)
			}
		}
		builds = append(builds, strings.Join(parts, ", "))
	}
	return builds
}

//go:embed performance.svg.tmpl
var plotTemplate string

// plotPoint is a point in pixels. The axes are at 70 to 570 and at 385 to 50.
type plotPoint struct {
	X, Y  int
	Label string
}

type plotLine struct {
	Color  string
	Points []plotPoint
}

func (l plotLine) Last() plotPoint { return l.Points[len(l.Points)-1] }

// plot returns an SVG of the CPU time per request by the length of the answer. Both axes
// are logarithmic.
func (r results) plot() string {
	low, high := math.Inf(1), math.Inf(-1) // powers of ten of nanoseconds
	for _, load := range fixedLoads {
		low = min(low, math.Floor(math.Log10(r.cost(load, wire))))
		high = max(high, math.Ceil(math.Log10(r.cost(load, spanmetrics))))
	}
	point := func(tokens, nanos float64, label string) plotPoint {
		right, up := (math.Log10(tokens)-1)/3, (math.Log10(nanos)-low)/(high-low)
		return plotPoint{70 + int(math.Round(500*right)), 385 - int(math.Round(335*up)), label}
	}
	var costs, lengths []plotPoint
	for power := low; power <= high; power++ {
		label := []string{"10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"}[int(power)-1]
		costs = append(costs, point(10, math.Pow(10, power), label))
	}
	for power, label := range []string{"10", "100", "1,000", "10,000"} {
		lengths = append(lengths, point(math.Pow(10, float64(power+1)), 1, label))
	}
	var lines []plotLine
	for _, line := range []struct{ kind, color, label string }{
		{wire, "wire", "metrics from the wire"}, {everySpan, "span", "a span per request"}, {nop, "nop", "otlp → nop"}, {spanmetrics, "spanmetrics", "otlp → spanmetrics"},
	} {
		drawn := plotLine{Color: line.color}
		for i, load := range fixedLoads {
			drawn.Points = append(drawn.Points, point([]float64{10, 100, 500, 10_000}[i], r.cost(load, line.kind), line.label))
		}
		lines = append(lines, drawn)
	}
	var svg strings.Builder
	try(must(template.New("plot").Parse(plotTemplate)).Execute(&svg, map[string]any{"costs": costs, "lengths": lengths, "lines": lines}))
	return svg.String()
}
