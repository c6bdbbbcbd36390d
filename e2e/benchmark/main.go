// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command benchmark measures the CPU time of a whole Collector process.
//
// It sends the same token streams along several paths: to the token_stream receiver, to
// the otlp receiver with the nop exporter, and, with a second build, to spanmetrics.
// docs/performance.md is its output and describes the method. Requests are encoded
// beforehand, have new IDs, and are sent over two connections until the Collector has used a
// given CPU time in a round, after a warm-up turn that is not counted. With -tap, it compares the
// token_tap receiver with other proxies instead, for the README of that receiver.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	machine "github.com/shirou/gopsutil/v4/load"
)

func main() {
	if err := caught(func() { run(must(parseOptions())) }); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// failure is the panic of an error that ends the run: each caller would only return it. Deferred
// functions stop the processes of the run.
type failure struct{ error }

func try(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](value T, err error) T {
	try(err)
	return value
}

// caught returns the error that a function failed with.
func caught(do func()) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = failed.error
		default:
			panic(failed)
		}
	}()
	do()
	return nil
}

// about runs a function and names in its error what it was about.
func about(what string, do func()) {
	if err := caught(do); err != nil {
		try(fmt.Errorf("%s: %w", what, err))
	}
}

func run(o options) {
	switch {
	case o.serve != "":
		try(serve(o.serve, o.address, o.upstream))
	case o.tap:
		measureTap(o)
	default:
		measurePaths(o)
	}
}

func measurePaths(o options) {
	begin, all, measured := time.Now(), groups(o), map[string]results{}
	groups := all
	heaps := []string{largeHeap, defaultHeap}
	if o.check {
		heaps = heaps[:1] // whose ratios do not depend on the garbage collector
	}
	for _, heap := range heaps {
		measured[heap] = results{}
		if heap == defaultHeap {
			groups = atDefaultHeap(groups)
		}
		for _, group := range groups {
			fmt.Printf("%s ... %s, %s: %d paths\n", since(begin), heap, group[0].load, len(group))
			maps.Copy(measured[heap], measure(group, o.rounds, o.cpu, heap))
		}
		fmt.Print(heap + "\n" + measured[heap].detailTable(groups))
		for _, group := range groups {
			for _, r := range ratiosOf(group) {
				fmt.Printf("%s, %s: %s (%s)\n", heap, r, measured[heap].ratio(r.load, r.kind, r.than), spread(r.each(measured[heap])))
			}
		}
	}
	defer func() { fmt.Println("measured for", since(begin)) }()
	switch {
	case o.check:
		try(checkRatios(o.measured, all, measured[largeHeap], func(group []*path) results { return measure(group, o.rounds, o.cpu, largeHeap) }))
	case o.document != "":
		document(o, all, measured)
	}
}

func since(begin time.Time) time.Duration { return time.Since(begin).Round(time.Second) }

type options struct {
	collector, peers string
	self             string // this program
	rounds           int
	cpu              time.Duration
	only             string
	check            bool
	measured         string
	document         string
	tap              bool
	load             float64 // of the machine before the run

	serve, address, upstream string
}

func parseOptions() (o options, err error) {
	flag.StringVar(&o.collector, "collector", "dist/otelcol-tokenpulse", "`path` of the Collector with tokenpulse")
	flag.StringVar(&o.peers, "peers", "", "`path` of a Collector with spanmetrics; without it, fewer loads and paths are measured")
	flag.IntVar(&o.rounds, "rounds", 5, "number of rounds")
	flag.DurationVar(&o.cpu, "cpu", 750*time.Millisecond, "minimum CPU time of each path in a round")
	flag.StringVar(&o.only, "only", "", "measure only loads with this `text` in their name")
	flag.BoolVar(&o.check, "check", false, "fail if a ratio falls under two thirds of its value in the file of -measured; with -tap, under nine tenths")
	flag.StringVar(&o.measured, "measured", "e2e/benchmark/measured.json", "`file` with the ratios of the last full run")
	flag.StringVar(&o.document, "document", "", "`folder` to write performance.md and performance.svg to; also writes the file of -measured. Needs -peers. With -tap, writes only the tables of cost into the README.md of the folder")
	flag.BoolVar(&o.tap, "tap", false, "measure only what the token_tap receiver adds to streams, compared with nginx, haproxy and Go's reverse proxy")
	flag.StringVar(&o.serve, "serve", "", "only run a `server`: floor (adds the latencies of streams to histograms, and does nothing else); for -tap, streams, proxy (Go's reverse proxy) or collector-proxy (the same, with the HTTP server and client of a Collector)")
	flag.StringVar(&o.address, "address", "", "`address` of -serve")
	flag.StringVar(&o.upstream, "upstream", "", "`URL` behind the proxy")
	flag.Parse()
	switch {
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds is %d; give at least 1", o.rounds)
	case o.cpu < 250*time.Millisecond:
		return o, fmt.Errorf("-cpu is %s; give at least 250ms, because the kernel counts in steps of 10ms", o.cpu)
	case o.document != "" && (o.peers == "" && !o.tap || o.only != ""):
		return o, fmt.Errorf("-document %s needs all paths; give -peers or -tap, and remove -only", o.document)
	}
	average, err := machine.Avg()
	if err != nil {
		return o, err
	}
	o.load = average.Load1
	o.self, err = os.Executable()
	return o, err
}

// binary returns the Collector for a kind of path.
func (o options) binary(kind string) string {
	if kind == spanmetrics || kind == peerNop {
		return o.peers
	}
	return o.collector
}

// selects reports whether a path is measured. Without the peers, some loads are enough
// to notice that tokenpulse became slower.
func (o options) selects(k key) bool {
	if o.peers == "" && (o.binary(k.kind) == "" || k.kind == floor || o.only == "" && !slices.Contains(shortLoads, k.load)) {
		return false
	}
	return strings.Contains(k.load, o.only)
}

// shortLoads are measured without the peers.
var shortLoads = []string{tokens10, tokens500, uniqueValues, inParts, foreignSpans}
