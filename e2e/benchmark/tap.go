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
	tapLasts   = 6 * time.Second // each turn of a proxy, without the warm-up
)

// tapLoads are a usual load, for latency, and very many slow streams, for memory. A proxy
// needs two connections for each.
var tapLoads = []tapLoad{{streams: 200, perSecond: 50, each: 4 * time.Second}, {streams: 9500, perSecond: 2, each: 20 * time.Second}}

// tapProxy is one way from the client to the upstream.
type tapProxy struct {
	name      string
	arguments []string // the program and its arguments; without them, clients ask the upstream
}

const (
	noProxy    = "no proxy"
	plainProxy = "`httputil.ReverseProxy`"
	nginxProxy = "nginx, `proxy_buffering off`"
	tapPath    = "`token_tap` → `token_latency` → `token_sli`"
)

// One worker, so that one process has all CPU time.
const nginxConfig = `daemon off; master_process off; error_log stderr; pid FOLDER/pid;
events { worker_connections 20100; }
http {
  access_log off;
  client_body_temp_path FOLDER; proxy_temp_path FOLDER; fastcgi_temp_path FOLDER; uwsgi_temp_path FOLDER; scgi_temp_path FOLDER;
  keepalive_requests 1000000;
  upstream llm { server UPSTREAM; keepalive 10000; keepalive_requests 1000000; }
  server {
    listen $http backlog=4096;
    location / {
      proxy_pass http://llm; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 1h;
    }
  }
}`

const tapConfig = `
receivers:
  token_tap:
    endpoint: $http
    upstream: {endpoint: "http://UPSTREAM"}
processors: {token_latency: }
exporters: {token_sli: {endpoint: $scrape}}
service:
  telemetry: {logs: {level: warn}, metrics: {level: none}}
  pipelines: {traces: {receivers: [token_tap], processors: [token_latency], exporters: [token_sli]}}
`

func tapProxies(o options, folder, upstream string) []tapProxy {
	replace := strings.NewReplacer("FOLDER", folder, "UPSTREAM", upstream).Replace
	writeAndRun := `printf %s "$1" >"$2" && exec nginx -c "$2"` // the config has the address that start chooses
	return []tapProxy{
		{name: noProxy},
		{plainProxy, []string{o.self, "-reverse-proxy", "$http", "-upstream", "http://" + upstream}},
		{nginxProxy, []string{"sh", "-c", writeAndRun, "nginx", replace(nginxConfig), filepath.Join(folder, "nginx.conf")}},
		{tapPath, []string{o.collector, "--config", "yaml:" + replace(tapConfig)}},
	}
}

// tapResult is what one proxy cost in one round.
type tapResult struct {
	chunk50, chunk99, first50, first99 float64 // microseconds
	cpu                                float64 // microseconds per chunk
	memory                             float64 // peak, MiB
}

// measureTap compares the tap with other proxies: the same streams through each, in turn.
func measureTap(o options) error {
	folder, err := os.MkdirTemp("", "tap")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	upstream, err := start([]string{o.self, "-streams", "$http"})
	if err != nil {
		return err
	}
	defer upstream.stop()
	for _, l := range tapLoads {
		if !strings.Contains(l.String(), o.only) {
			continue
		}
		measured := map[string][]tapResult{}
		proxies := tapProxies(o, folder, upstream.http)
		for range o.rounds {
			for _, p := range proxies {
				result, err := p.measure(l, upstream)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", l, p.name, err)
				}
				measured[p.name] = append(measured[p.name], result)
			}
		}
		fmt.Printf("\n%s, %d rounds:\n%s", l, o.rounds, tapTable(proxies, measured))
	}
	return nil
}

func (p tapProxy) measure(l tapLoad, upstream *collectorProcess) (result tapResult, err error) {
	measured := upstream
	if p.arguments != nil {
		if measured, err = start(p.arguments); err != nil {
			return result, err
		}
		defer measured.stop()
	}
	var before time.Duration
	sample, err := l.run(measured.http, tapLasts, func() (err error) {
		before, err = measured.cpuTime()
		return err
	})
	if err != nil {
		return result, fmt.Errorf("%w; log:\n%s", err, measured.log.String())
	}
	after, err := measured.cpuTime()
	if err != nil {
		return result, err
	}
	result = tapResult{
		chunk50: 1e6 * quantile(sample.chunk, 0.5), chunk99: 1e6 * quantile(sample.chunk, 0.99),
		first50: 1e6 * quantile(sample.first, 0.5), first99: 1e6 * quantile(sample.first, 0.99),
	}
	if p.arguments != nil {
		result.cpu = float64((after - before).Microseconds()) / float64(len(sample.chunk))
		result.memory, err = measured.peakMemory()
		result.memory /= 1 << 20
	}
	return result, err
}

// quantile returns the value of the nearest rank.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}

// tapTable shows what each proxy adds to the latency without a proxy in the same round.
func tapTable(proxies []tapProxy, measured map[string][]tapResult) string {
	cell := func(p tapProxy, value func(tapResult) float64) string {
		var values []float64
		for round, result := range measured[p.name] {
			added := value(result)
			if p.arguments != nil {
				added -= value(measured[noProxy][round])
			}
			values = append(values, added)
		}
		return number(median(values)) + " (" + spread(values) + ")"
	}
	var rows [][]string
	for _, p := range proxies {
		rows = append(rows, []string{
			p.name,
			cell(p, func(r tapResult) float64 { return r.chunk50 }), cell(p, func(r tapResult) float64 { return r.chunk99 }),
			cell(p, func(r tapResult) float64 { return r.first50 }), cell(p, func(r tapResult) float64 { return r.first99 }),
			cell(p, func(r tapResult) float64 { return r.cpu }), cell(p, func(r tapResult) float64 { return r.memory }),
		})
	}
	return table([]string{"added to no proxy, µs", "chunk p50", "chunk p99", "first chunk p50", "first chunk p99", "CPU per chunk", "peak RSS, MiB"}, rows)
}
