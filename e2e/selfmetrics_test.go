// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// selfMetrics are the metrics that a Collector reports about itself.
type selfMetrics map[string]*dto.MetricFamily

// selfMetricsConfig makes a Collector report its self-metrics at ${env:SELF_METRICS_PORT},
// under the names of the documentation.
const selfMetricsConfig = `
service:
  telemetry:
    logs: {disable_stacktrace: true}
    metrics:
      level: normal
      readers:
        - pull: {exporter: {prometheus: {host: 127.0.0.1, port: "${env:SELF_METRICS_PORT}", without_type_suffix: true, without_units: true, without_scope_info: true}}}
`

// withSelfMetrics returns an address, and the arguments of a Collector that reports its
// self-metrics there.
func withSelfMetrics(t *testing.T) (address string, arguments []string) {
	t.Helper()
	address = freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	setenv(t, "SELF_METRICS_PORT", port)
	return address, []string{"--config", writeFile(t, t.TempDir(), "self.yaml", selfMetricsConfig)}
}

func scrapeSelf(t *testing.T, address string) selfMetrics {
	t.Helper()
	return scrapeURL(t, fmt.Sprintf("http://%s/metrics", address))
}

// of returns the sum over the time series of otelcol_<name> that have all of the labels,
// given as name=value.
func (m selfMetrics) of(name string, labels ...string) (sum int64) {
	for _, metric := range m["otelcol_"+name].GetMetric() {
		matches := true
		for _, wanted := range labels {
			key, value, _ := strings.Cut(wanted, "=")
			matches = matches && label(metric, key) == value
		}
		if matches {
			sum += int64(metric.GetCounter().GetValue() + metric.GetGauge().GetValue())
		}
	}
	return sum
}
