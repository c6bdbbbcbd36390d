// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	_ "embed"
	"fmt"
	"os"
	pathpkg "path"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
)

//go:embed performance.md.tmpl
var documentTemplate string

// document writes the results, the machine and the builds to the file of -document.
func document(o options, results string) error {
	parsed, err := template.New("performance").Parse(documentTemplate)
	if err != nil {
		return err
	}
	processors, err := cpu.Info()
	if err != nil {
		return err
	}
	builds, err := buildsOf(o.collector, o.peers)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := parsed.Execute(&text, map[string]any{
		"results":     results,
		"date":        time.Now().UTC().Format(time.DateOnly),
		"processor":   processors[0].ModelName,
		"cores":       runtime.NumCPU(),
		"builds":      builds,
		"rounds":      o.rounds,
		"turns":       turns,
		"cpu":         o.cpu,
		"connections": connections,
		"streams":     streamsPerRequest,
		"tokens":      tokensPerStream,
		"spans":       spansPerRequest,
		"scraped":     scrapedHistograms,
	}); err != nil {
		return err
	}
	return os.WriteFile(o.document, []byte(text.String()), 0o600)
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
		if binary == "" {
			continue
		}
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
