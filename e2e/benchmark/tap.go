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

const maxStreams = 10_000

// cpuLoads are those of all proxies at the same time: long answers, answers of 30 chunks, and of six, for which the
// exchange costs more than its chunks.
var cpuLoads = []tapLoad{
	{streams: 40, perSecond: 50, each: 10 * time.Second, lasts: 20 * time.Second},
	{streams: 40, perSecond: 50, each: 10 * time.Second, lasts: 20 * time.Second, http2: true},
	{streams: 200, perSecond: 10, each: 3 * time.Second, lasts: 20 * time.Second},
	{streams: 200, perSecond: 10, each: 3 * time.Second, lasts: 20 * time.Second, http2: true},
	{streams: 600, perSecond: 1, each: 6 * time.Second, lasts: 20 * time.Second},
	{streams: 600, perSecond: 1, each: 6 * time.Second, lasts: 20 * time.Second, http2: true},
}

// turnLoads are those of one proxy after the other: a usual load, for latency, with connections of their own and with
// connections that clients share, and as many streams as 20,000 open files allow, for memory: a proxy has a connection
// per stream to the upstream, so clients share connections.
//
// The memory of a Go program grows until its garbage collector has run at its full size. With a turn shorter
// than a few streams, Go's proxy looks smaller than it becomes: its buffers of 32 KiB take memory when they
// are used again.
var turnLoads = []tapLoad{
	{streams: 200, perSecond: 50, each: 4 * time.Second, lasts: 6 * time.Second},
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
	haproxyProxy   = "haproxy"
	tapPath        = "`token_tap` → `token_latency` → `token_sli`"
)

func tapProxies(o options, l tapLoad, folder, upstream string) []tapProxy {
	ofNginx, ofHAProxy := "", ""
	if l.http2 {
		ofNginx, ofHAProxy = "http2", "proto h2"
	}
	// The config has the address that start chooses.
	writeAndRun := func(run, config, file string) []string {
		return []string{"sh", "-c", `printf %s "$1" >"$2" && exec ` + run + ` "$2"`, "sh", config, filepath.Join(folder, file)}
	}
	return []tapProxy{
		{name: noProxy},
		{plainProxy, []string{o.self, "-serve", "proxy", "-address", "$http", "-upstream", "http://" + upstream}},
		{collectorProxy, []string{o.self, "-serve", "collector-proxy", "-address", "$http", "-upstream", "http://" + upstream}},
		{nginxProxy, writeAndRun("nginx -c", config("nginx.conf", "FOLDER", folder, "UPSTREAM", upstream, "PROTOCOL", ofNginx), "nginx.conf")},
		{haproxyProxy, writeAndRun("haproxy -db -f", config("haproxy.cfg", "UPSTREAM", upstream, "PROTOCOL", ofHAProxy), "haproxy.cfg")},
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

// measureTap compares the tap with other proxies: the CPU time of all at the same time, and latency and memory of each
// in turn.
func measureTap(o options) {
	folder := must(os.MkdirTemp("", "tap"))
	defer os.RemoveAll(folder)
	upstream := start([]string{o.self, "-serve", "streams", "-address", "$http"})
	defer upstream.stop()
	atOnce := func(l tapLoad, only ...string) tapMeasured {
		measured := tapMeasured{l, tapProxies(o, l, folder, upstream.http)[1:], map[string][]tapResult{}}
		if len(only) > 0 {
			measured.proxies = slices.DeleteFunc(measured.proxies, func(p tapProxy) bool { return !slices.Contains(only, p.name) })
		}
		for range o.rounds {
			about(l.String(), measured.atOnce)
		}
		return measured
	}
	if o.check {
		for _, l := range checkedLoads {
			try(checkTap(o.measured, l, func() tapMeasured { return atOnce(l, collectorProxy, tapPath) }))
		}
		return
	}
	var cpu, turns []tapMeasured
	for _, l := range cpuLoads {
		if strings.Contains(l.String(), o.only) {
			cpu = append(cpu, atOnce(l))
			fmt.Print(aligned(fmt.Sprintf("\n%d rounds at once:\n%s\n%s", o.rounds, cpu[len(cpu)-1].table(cpuPerChunk), ratioTable(cpu[len(cpu)-1:]))))
		}
	}
	for _, l := range turnLoads {
		if strings.Contains(l.String(), o.only) {
			measured := tapMeasured{l, tapProxies(o, l, folder, upstream.http), map[string][]tapResult{}}
			for range o.rounds {
				for _, p := range measured.proxies {
					about(fmt.Sprintf("%s: %s", l, p.name), func() { measured.results[p.name] = append(measured.results[p.name], p.measure(l, upstream)) })
				}
			}
			fmt.Print(aligned(fmt.Sprintf("\n%d rounds in turn:\n%s\n%s", o.rounds, measured.table(latencyColumns...), measured.table(memoryColumns...))))
			turns = append(turns, measured)
		}
	}
	if o.document != "" {
		documentTap(o, cpu, turns)
		ratios := map[string]float64{}
		for _, m := range cpu {
			if slices.Contains(checkedLoads, m.load) {
				ratios[m.load.ratio().String()] = m.ratio()
			}
		}
		writeRatios(o.measured, ratios)
	}
}

// checkedLoads are those whose ratio -check compares with the last full run: long answers, and short ones on the
// protocol that takes more.
var checkedLoads = []tapLoad{cpuLoads[0], cpuLoads[5]}

// ratio is that of -check.
func (l tapLoad) ratio() ratio { return ratio{l.String(), tapPath, collectorProxy} }

// ratio returns the value of tapLoad.ratio.
func (m tapMeasured) ratio() float64 { return median(m.ratios(cpuPerChunk, collectorProxy, tapPath)) }

// toleratedOfTap is the part of a ratio of proxies that must remain, which were measured in the same seconds.
const toleratedOfTap = 0.9

// checkTap fails if the tap has become slower.
func checkTap(file string, l tapLoad, measure func() tapMeasured) error {
	return l.ratio().check(readRatios(file), nil, toleratedOfTap, func() float64 {
		value := measure().ratio()
		fmt.Printf("%s: %s\n", l.ratio(), number(value))
		return value
	}, "make suite-bench-tap ARGS='-check -rounds 1'", "make suite-bench-tap")
}

// atOnce measures the CPU time of all proxies in the same seconds, each with its own streams.
func (m *tapMeasured) atOnce() {
	var running []*collectorProcess
	var streams []*streamer
	defer func() {
		for _, c := range running {
			c.stop()
		}
	}()
	for _, p := range m.proxies {
		running = append(running, start(p.arguments))
	}
	from := time.Now().Add(m.load.each + time.Second)
	for _, c := range running {
		streams = append(streams, m.load.start(c.http, from))
	}
	used := func() (all []time.Duration) {
		for _, c := range running {
			all = append(all, c.cpuTime())
		}
		return all
	}
	time.Sleep(time.Until(from))
	before := used()
	time.Sleep(time.Until(streams[0].to))
	after := used()
	for i, p := range m.proxies {
		var sample tapSample
		about(p.name, func() { sample = streams[i].stop() })
		m.results[p.name] = append(m.results[p.name], tapResult{cpuPerChunk: float64((after[i] - before[i]).Microseconds()) / float64(len(sample.chunk))})
	}
}

func (p tapProxy) measure(l tapLoad, measured *collectorProcess) tapResult {
	if p.arguments != nil {
		measured = start(p.arguments)
		defer measured.stop()
	}
	idle := measured.peakMemory()
	streams := l.start(measured.http, time.Now().Add(l.each+time.Second))
	time.Sleep(time.Until(streams.to))
	peak := measured.peakMemory()
	var sample tapSample
	if err := caught(func() { sample = streams.stop() }); err != nil {
		try(fmt.Errorf("%w; log:\n%s", err, measured.log.String()))
	}
	return tapResult{
		chunk50: 1e6 * quantile(sample.chunk, 0.5), chunk99: 1e6 * quantile(sample.chunk, 0.99),
		first50: 1e6 * quantile(sample.first, 0.5), first99: 1e6 * quantile(sample.first, 0.99),
		peakRSS: peak / (1 << 20), perStream: (peak - idle) / float64(l.streams) / (1 << 10),
	}
}

// quantile returns the value of the nearest rank.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}
