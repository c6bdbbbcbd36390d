// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command benchmark measures the CPU time of a whole Collector process.
//
// It sends the same token streams along several paths: to the token_stream receiver, to
// the otlp receiver with the nop exporter, and, with a second build, to spanmetrics.
// docs/performance.md is its output and describes the method. With -tap, it compares the
// token_tap receiver with other proxies instead, for the README of that receiver.
package main

import (
	"fmt"
	"maps"
	"os"
	"time"
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
	switch {
	case o.floor != "":
		return serveFloor(o.floor)
	case o.streams != "":
		return serveStreams(o.streams)
	case o.reverseProxy != "":
		return serveReverseProxy(o.reverseProxy, o.upstream)
	case o.tap:
		return measureTap(o)
	}
	begin, groups, measured := time.Now(), groups(o), results{}
	for _, group := range groups {
		fmt.Printf("%s ... %s: %d paths\n", since(begin), group[0].load, len(group))
		results, err := measure(group, o.rounds, o.cpu)
		if err != nil {
			return err
		}
		maps.Copy(measured, results)
	}
	fmt.Print(measured.detailTable(groups))
	for _, group := range groups {
		for _, r := range ratiosOf(group) {
			fmt.Printf("%s: %s (%s)\n", r, measured.ratio(r.load, r.kind, r.than), spread(r.each(measured)))
		}
	}
	defer func() { fmt.Println("measured for", since(begin)) }()
	switch {
	case o.check:
		return checkRatios(o.measured, groups, measured, func(group []*path) (results, error) { return measure(group, o.rounds, o.cpu) })
	case o.document != "":
		return document(o, groups, measured)
	default:
		return nil
	}
}

func since(begin time.Time) time.Duration { return time.Since(begin).Round(time.Second) }
