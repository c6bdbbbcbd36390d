// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	maxStreams = 10_000
	// Each turn of a proxy with -check, without the warm-up.
	tapCheckLasts = 3 * time.Second
)

// tapLoads are a usual load, for latency, the same with more streams and with connections that clients
// share, and as many streams as 20,000 open files allow, for memory: a proxy has a connection per stream to
// the upstream, so clients share connections.
//
// The memory of a Go program grows until its garbage collector has run at its full size. With a turn shorter
// than a few streams, Go's proxy looks smaller than it becomes: its buffers of 32 KiB take memory when they
// are used again.
var tapLoads = []tapLoad{
	{streams: 200, perSecond: 50, each: 4 * time.Second, lasts: 6 * time.Second},
	{streams: 600, perSecond: 50, each: 4 * time.Second, lasts: 6 * time.Second},
	{streams: 200, perSecond: 50, each: 4 * time.Second, lasts: 6 * time.Second, http2: true},
	{streams: maxStreams, perSecond: 2, each: 10 * time.Second, lasts: 30 * time.Second, http2: true},
}

// tapProxy is one way from the client to the upstream.
type tapProxy struct {
	name      string
	arguments []string // the program and its arguments; without them, clients ask the upstream
}

const (
	noProxy        = "no proxy"
	plainProxy     = "`httputil.ReverseProxy`"
	collectorProxy = "the same, with `confighttp`"
	nginxProxy     = "nginx, `proxy_buffering off`"
	tapPath        = "`token_tap` → `token_latency` → `token_sli`"
)

func tapProxies(o options, l tapLoad, folder, upstream string) []tapProxy {
	protocol := ""
	if l.http2 {
		protocol = "http2"
	}
	nginx := config("nginx.conf", "FOLDER", folder, "UPSTREAM", upstream, "PROTOCOL", protocol)
	writeAndRun := `printf %s "$1" >"$2" && exec nginx -c "$2"` // the config has the address that start chooses
	return []tapProxy{
		{name: noProxy},
		{plainProxy, []string{o.self, "-serve", "proxy", "-address", "$http", "-upstream", "http://" + upstream}},
		{collectorProxy, []string{o.self, "-serve", "collector-proxy", "-address", "$http", "-upstream", "http://" + upstream}},
		{nginxProxy, []string{"sh", "-c", writeAndRun, "nginx", nginx, filepath.Join(folder, "nginx.conf")}},
		{tapPath, collectorWith(o.collector, config("tap.yaml", "UPSTREAM", upstream))},
	}
}

// tapResult is what one proxy cost in one round, by column of the tables.
type tapResult map[string]float64

const (
	chunk50, chunk99   = "chunk p50, µs", "chunk p99, µs"
	first50, first99   = "first chunk p50, µs", "first chunk p99, µs"
	cpuPerChunk        = "CPU per chunk, µs"
	peakRSS, perStream = "peak RSS, MiB", "RSS per stream, KiB" // growth of the peak for each stream
)

// tapMeasured is what each proxy cost under one load, in each round.
type tapMeasured struct {
	load    tapLoad
	proxies []tapProxy
	results map[string][]tapResult // by name of the proxy
}

// measureTap compares the tap with other proxies: the same streams through each, in turn.
func measureTap(o options) {
	folder := must(os.MkdirTemp("", "tap"))
	defer os.RemoveAll(folder)
	upstream := start([]string{o.self, "-serve", "streams", "-address", "$http"})
	defer upstream.stop()
	measure := func(l tapLoad, proxies ...string) tapMeasured {
		measured := tapMeasured{l, tapProxies(o, l, folder, upstream.http), map[string][]tapResult{}}
		for range o.rounds {
			for _, p := range measured.proxies {
				if len(proxies) > 0 && !slices.Contains(proxies, p.name) {
					continue
				}
				about(fmt.Sprintf("%s: %s", l, p.name), func() {
					measured.results[p.name] = append(measured.results[p.name], p.measure(l, upstream))
				})
			}
		}
		return measured
	}
	if o.check {
		short := tapLoads[0]
		short.lasts = tapCheckLasts
		try(checkTap(o.measured, func() tapMeasured { return measure(short, plainProxy, tapPath) }))
		return
	}
	var all []tapMeasured
	for _, l := range tapLoads {
		if strings.Contains(l.String(), o.only) {
			measured := measure(l)
			fmt.Print(aligned(fmt.Sprintf("\n%d rounds:\n%s\n%s", o.rounds, measured.table(chunkColumns...), measured.table(memoryColumns...))))
			all = append(all, measured)
		}
	}
	fmt.Print("\n" + aligned(tapRatios(all)))
	if o.document != "" {
		documentTap(o, all)
		writeRatios(o.measured, map[string]float64{tapRatio.String(): median(all[0].ratios(cpuPerChunk, plainProxy, tapPath))})
	}
}

// tapRatio is what -check compares with the last full run.
var tapRatio = ratio{tapLoads[0].String(), tapPath, plainProxy}

// checkTap fails if the tap has become slower.
func checkTap(file string, measure func() tapMeasured) error {
	return tapRatio.check(readRatios(file), nil, func() float64 {
		value := median(measure().ratios(cpuPerChunk, plainProxy, tapPath))
		fmt.Printf("%s: %s\n", tapRatio, number(value))
		return value
	}, "make suite-bench-tap ARGS='-check -rounds 1'", "make suite-bench-tap")
}

func (p tapProxy) measure(l tapLoad, measured *collectorProcess) tapResult {
	if p.arguments != nil {
		measured = start(p.arguments)
		defer measured.stop()
	}
	idle := measured.peakMemory()
	streams := l.start(measured.http)
	time.Sleep(time.Until(streams.from))
	before := measured.cpuTime()
	time.Sleep(time.Until(streams.to))
	used, peak := measured.cpuTime()-before, measured.peakMemory()
	var sample tapSample
	if err := caught(func() { sample = streams.stop() }); err != nil {
		try(fmt.Errorf("%w; log:\n%s", err, measured.log.String()))
	}
	return tapResult{
		chunk50: 1e6 * quantile(sample.chunk, 0.5), chunk99: 1e6 * quantile(sample.chunk, 0.99),
		first50: 1e6 * quantile(sample.first, 0.5), first99: 1e6 * quantile(sample.first, 0.99),
		cpuPerChunk: float64(used.Microseconds()) / float64(len(sample.chunk)),
		peakRSS:     peak / (1 << 20), perStream: (peak - idle) / float64(l.streams) / (1 << 10),
	}
}

// quantile returns the value of the nearest rank.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}
