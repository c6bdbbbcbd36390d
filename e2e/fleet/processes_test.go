// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// startFleetCollector runs the Collector of examples/fleet with one of its configs and
// optional further arguments.
func startFleetCollector(t *testing.T, config string, more ...string) *collector.Process {
	t.Helper()
	arguments := append([]string{"--config", collector.Example(t, filepath.Join("fleet", config)), collector.OwnMetricsOff}, more...)
	return collector.StartProcess(t, collector.Built(t, "fleet/otelcol-fleet"), arguments...)
}

// startFleetWorker runs a worker that is ready to be scraped.
func startFleetWorker(t *testing.T, config string, more ...string) *collector.Collector {
	t.Helper()
	c := &collector.Collector{GRPC: collector.FreeAddress(t), Metrics: collector.FreeAddress(t)}
	collector.Setenv(t, "OTLP_GRPC_ENDPOINT", c.GRPC)
	collector.Setenv(t, "METRICS_ENDPOINT", c.Metrics)
	c.Process = startFleetCollector(t, config, more...)
	c.Process.WaitUntilReady(t) // the exporter answers before the receivers listen
	return c
}

// startFleetGateway runs a gateway that is ready for token events.
func startFleetGateway(t *testing.T, config string, more ...string) *collector.Collector {
	t.Helper()
	c := &collector.Collector{HTTP: collector.FreeAddress(t), GRPC: collector.FreeAddress(t)}
	collector.Setenv(t, "TOKENS_HTTP_ENDPOINT", c.HTTP)
	collector.Setenv(t, "TOKENS_GRPC_ENDPOINT", c.GRPC)
	collector.Setenv(t, "OTLP_GRPC_ENDPOINT", collector.FreeAddress(t))
	c.Process = startFleetCollector(t, config, more...)
	c.WaitForListener(t, c.HTTP)
	return c
}

// fleet is a gateway that balances traces over its workers.
type fleet struct {
	gateway *collector.Collector
	workers []*collector.Collector
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
		addresses = append(addresses, w.GRPC)
	}
	require.NoError(t, os.WriteFile(f.list, fmt.Appendf(nil,
		"exporters: {load_balancing: {resolver: {static: {hostnames: [%s]}}}}\n", strings.Join(addresses, ", ")), 0o600))
}

// kill ends a worker without a chance to flush, and returns it. The gateway still has
// it in its list.
func (f *fleet) kill(t *testing.T) *collector.Collector {
	t.Helper()
	victim := f.workers[0]
	f.workers = f.workers[1:]
	victim.Kill(t)
	return victim
}

// requests returns how many requests a worker has counted.
func requests(t *testing.T, c *collector.Collector) int {
	t.Helper()
	return exposition.RequestCount(exposition.Scrape(t, c))
}

// prometheusOf scrapes Collectors by job.
func prometheusOf(t *testing.T, jobs map[string][]*collector.Collector) *promserver.Server {
	t.Helper()
	var config strings.Builder
	config.WriteString("scrape_configs:\n")
	for job, members := range jobs {
		var targets []string
		for _, c := range members {
			targets = append(targets, c.Metrics)
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
	return promserver.Run(t, testenv.Program(t, "prometheus"), config.String(), "--enable-feature", "native-histograms")
}
