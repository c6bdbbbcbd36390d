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
	facts, err := factsOf(o)
	if err != nil {
		return err
	}
	page, err := render(groups, measured, facts)
	if err != nil {
		return err
	}
	plot, err := measured.plot()
	return errors.Join(
		err,
		os.WriteFile(filepath.Join(o.document, "performance.md"), []byte(page), 0o600),
		os.WriteFile(filepath.Join(o.document, "performance.svg"), []byte(plot), 0o600),
		writeRatios(o.measured, groups, measured),
	)
}

// factsOf returns what the page states beside the costs of paths.
func factsOf(o options) (facts map[string]any, err error) {
	facts = map[string]any{
		"date": time.Now().UTC().Format(time.DateOnly), "cores": runtime.NumCPU(), "rounds": o.rounds, "turns": turns, "cpu": o.cpu,
		"connections": connections, "spans": spansPerRequest, "scraped": scrapedHistograms,
	}
	var idle, publishing float64
	for _, measure := range []func() error{
		func() error { facts["processor"], err = processorName(); return err },
		func() error { facts["builds"], err = buildsOf(o.collector, o.peers); return err },
		func() error { facts["responses"], err = responseTable(o); return err },
		func() error { facts["twoCores"], err = coresTable(o.rounds, o.cpu); return err },
		func() error { facts["allocations"], err = allocationTable(o); return err },
		func() error { idle, err = idleCores(o, fixed("", 1, 10), everySecond); return err },
		func() error {
			publishing, err = idleCores(o, fixed("", 50, 10).ofSeries(publishedSeries), "max_series: 20000, "+everySecond)
			return err
		},
	} {
		if err := measure(); err != nil {
			return nil, err
		}
	}
	facts["idle"] = number(100 * idle)
	facts["publishing"] = number((publishing - idle) * 1e6 / publishedSeries)
	return facts, nil
}

func processorName() (string, error) {
	processors, err := cpu.Info()
	if err != nil {
		return "", err
	}
	return processors[0].ModelName, nil
}

// render returns the page.
func render(groups [][]*path, measured results, facts map[string]any) (string, error) {
	page, err := template.New("performance").Option("missingkey=error").Funcs(template.FuncMap{
		"wire":        func() string { return wire },
		"nop":         func() string { return nop },
		"spanmetrics": func() string { return spanmetrics },
		"micros":      measured.micros,
		"ratio":       measured.ratio,
		"floorShare":  func(load string) string { return number(100 * measured.cost(load, floor) / measured.cost(load, wire)) },
		"beyond":      measured.foreignRatio,
		"costs":       measured.costTable,
		"growth":      measured.growthTable,
		"needed":      measured.coresNeededTable,
		"ratios":      measured.ratioTable,
		"variations":  measured.variationTable,
		"foreign":     measured.foreignTable,
		"scrapes":     measured.scrapeTable,
		"sizes":       wireTable,
		"details":     func() string { return measured.detailTable(groups) },
	}).Parse(documentTemplate)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = page.Execute(&text, facts)
	return text.String(), err
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
