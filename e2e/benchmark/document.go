// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	_ "embed"
	"errors"
	"fmt"
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
func document(o options, groups [][]*path, measured results) error {
	processors, err := cpu.Info()
	if err != nil {
		return err
	}
	builds, err := buildsOf(o.collector, o.peers)
	if err != nil {
		return err
	}
	responses, err := responseTable(o)
	if err != nil {
		return err
	}
	cores, err := coresTable(o.rounds, o.cpu)
	if err != nil {
		return err
	}
	allocated, err := allocationTable(o)
	if err != nil {
		return err
	}
	idle, err := idleCores(o, fixed("", 1, 10), everySecond)
	if err != nil {
		return err
	}
	publishing, err := idleCores(o, fixed("", 50, 10).ofSeries(publishedSeries), "max_series: 20000, "+everySecond)
	if err != nil {
		return err
	}
	page, err := template.New("performance").Funcs(template.FuncMap{
		"micros": measured.micros,
		"ratio":  measured.ratio,
		"share": func(load, part, whole string) string {
			return number(100 * measured.cost(load, part) / measured.cost(load, whole))
		},
		"beyond": measured.foreignRatio,
	}).Parse(documentTemplate)
	if err != nil {
		return err
	}
	plot, err := measured.plot()
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := page.Execute(&text, map[string]any{
		"wire": wire, "everySpan": everySpan, "nop": nop, "spanmetrics": spanmetrics, "floor": floor,
		"tokens10": tokens10, "tokens500": tokens500, "tokens10000": tokens10000, "conversation": conversation,
		"costs": measured.costTable(), "growth": measured.growthTable(), "needed": measured.coresNeededTable(), "ratios": measured.ratioTable(),
		"variations": measured.variationTable(), "foreign": measured.foreignTable(), "scrapes": measured.scrapeTable(),
		"details": measured.detailTable(groups), "sizes": wireTable(), "responses": responses, "twoCores": cores, "allocations": allocated, "idle": number(100 * idle), "publishing": number((publishing - idle) * 1e6 / publishedSeries),
		"date": time.Now().UTC().Format(time.DateOnly), "processor": processors[0].ModelName, "cores": runtime.NumCPU(), "builds": builds,
		"rounds": o.rounds, "turns": turns, "cpu": o.cpu, "connections": connections, "spans": spansPerRequest, "scraped": scrapedHistograms,
	}); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(o.document, "performance.md"), []byte(text.String()), 0o600),
		os.WriteFile(filepath.Join(o.document, "performance.svg"), []byte(plot), 0o600),
		writeRatios(o.measured, groups, measured),
	)
}

// measuredModules are the modules whose versions the document lists.
var measuredModules = []string{
	"go.opentelemetry.io/collector/receiver/otlpreceiver",
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector",
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter",
}

// buildsOf returns the Go version and the measured modules of each binary.
func buildsOf(binaries ...string) (builds []string, err error) {
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, err
		}
		parts := []string{fmt.Sprintf("`%s`: %s", binary, info.GoVersion)}
		for _, module := range info.Deps {
			if slices.Contains(measuredModules, module.Path) {
				parts = append(parts, pathpkg.Base(module.Path)+" "+module.Version)
			}
		}
		builds = append(builds, strings.Join(parts, ", "))
	}
	return builds, nil
}
