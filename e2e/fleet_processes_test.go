// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// startFleetCollector runs the Collector of examples/fleet with one of its configs and
// optional further arguments.
func startFleetCollector(t *testing.T, config string, more ...string) *process {
	t.Helper()
	arguments := append([]string{"--config", example(t, filepath.Join("fleet", config)), ownMetricsOff}, more...)
	return start(t, built(t, "fleet/otelcol-fleet"), arguments...)
}

// startFleetWorker runs a worker that is ready to be scraped.
func startFleetWorker(t *testing.T, config string, more ...string) *collector {
	t.Helper()
	c := &collector{grpc: freeAddress(t), metrics: freeAddress(t)}
	setenv(t, "OTLP_GRPC_ENDPOINT", c.grpc)
	setenv(t, "METRICS_ENDPOINT", c.metrics)
	c.process = startFleetCollector(t, config, more...)
	c.process.waitUntilReady(t) // the exporter answers before the receivers listen
	return c
}

// startFleetGateway runs a gateway that is ready for token events.
func startFleetGateway(t *testing.T, config string, more ...string) *collector {
	t.Helper()
	c := &collector{http: freeAddress(t), grpc: freeAddress(t)}
	setenv(t, "TOKENS_HTTP_ENDPOINT", c.http)
	setenv(t, "TOKENS_GRPC_ENDPOINT", c.grpc)
	setenv(t, "OTLP_GRPC_ENDPOINT", freeAddress(t))
	c.process = startFleetCollector(t, config, more...)
	c.waitForListener(t, c.http)
	return c
}

// fleet is a gateway that balances traces over its workers.
type fleet struct {
	gateway *collector
	workers []*collector
	list    string // config file of the gateway with the addresses of the workers
}

func startFleet(t *testing.T, workers int, more ...string) *fleet {
	t.Helper()
	f := &fleet{list: filepath.Join(t.TempDir(), "workers.yaml")}
	for range workers {
		f.workers = append(f.workers, startFleetWorker(t, "worker.yaml"))
	}
	f.writeList(t)
	f.gateway = startFleetGateway(t, "gateway.yaml", append([]string{"--config", f.list}, more...)...)
	return f
}

func (f *fleet) writeList(t *testing.T) {
	t.Helper()
	var addresses []string
	for _, w := range f.workers {
		addresses = append(addresses, w.grpc)
	}
	require.NoError(t, os.WriteFile(f.list, fmt.Appendf(nil,
		"exporters: {load_balancing: {resolver: {static: {hostnames: [%s]}}}}\n", strings.Join(addresses, ", ")), 0o600))
}

// kill ends a worker without a chance to flush, and returns it. The gateway still has
// it in its list.
func (f *fleet) kill(t *testing.T) *collector {
	t.Helper()
	victim := f.workers[0]
	f.workers = f.workers[1:]
	victim.kill(t)
	return victim
}

// requests returns how many requests a worker has counted.
func requests(t *testing.T, c *collector) int {
	t.Helper()
	return requestCount(scrape(t, c))
}

// prometheusOf scrapes Collectors by job.
func prometheusOf(t *testing.T, jobs map[string][]*collector) *prometheus {
	t.Helper()
	var config strings.Builder
	config.WriteString("scrape_configs:\n")
	for job, members := range jobs {
		var targets []string
		for _, c := range members {
			targets = append(targets, c.metrics)
		}
		encoded, err := json.Marshal(targets)
		require.NoError(t, err)
		fmt.Fprintf(&config, `
  - job_name: %s
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs: [{targets: %s}]
`, job, encoded)
	}
	return runPrometheus(t, testenv.Program(t, "prometheus"), config.String(), "--enable-feature", "native-histograms")
}
