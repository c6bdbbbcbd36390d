// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command benchmark measures the CPU time of a whole Collector process.
//
// It sends the same token streams and the same spans along several paths: to the
// token_stream receiver, to the otlp receiver with the nop exporter, and, with a second
// build, to spanmetrics. docs/performance.md is its output and describes the method.
package main

import (
	"fmt"
	"maps"
	"os"
	"strings"
)

func main() {
	o, err := parseOptions()
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	groups := [][]*path{tokenPaths(o.collector, o.peers)}
	if o.peers != "" {
		groups = append(groups, loadPaths(o.collector), spanPaths(o.collector, o.peers), scrapePaths(o.collector, o.peers))
	}
	measured := map[string][]measurement{}
	for _, group := range groups {
		results, err := measure(group, o.rounds, o.cpu)
		if err != nil {
			return err
		}
		maps.Copy(measured, results)
	}
	tables := []string{ratioTable(measured), wireTable()}
	if o.peers != "" {
		for _, measure := range []func(collector string) (string, error){openTable, pauseTable} {
			responses, err := measure(o.collector)
			if err != nil {
				return err
			}
			tables = append(tables, responses)
		}
		cores, err := coresTable(o.rounds, o.cpu)
		if err != nil {
			return err
		}
		tables = append(tables, cores)
	}
	for _, group := range groups {
		tables = append(tables, costTable(group, measured))
	}
	results := strings.Join(tables, "\n")
	fmt.Print(results)
	if o.document != "" {
		if err := document(o, results); err != nil {
			return err
		}
	}
	if ratio := median(againstNop.ratios(measured)); ratio < o.minRatio {
		return fmt.Errorf("%s: the ratio is %.1f, expected at least %g", againstNop.name, ratio, o.minRatio)
	}
	return nil
}
