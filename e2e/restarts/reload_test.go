// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// withoutBackend sends spans, metrics and events to a backend that is down or hangs: all that a
// shutdown still has to deliver is refused or blocks.
const withoutBackend = `
receivers:
  token_stream:
  token_stream/open: {protocols: {http: {endpoint: %[3]q}}}
  token_stream/series: {protocols: {http: {endpoint: %[2]q}}, series: {metrics_flush_interval: 10m}}
processors:
  token_latency: {slos: [{name: tpot, indicator: time_per_output_token, threshold: 1ms}]}
connectors:
  token_sli/connected: {metrics_flush_interval: 10m, objectives: [{slo: tpot, objective: 0.99, window: 720h}]}
exporters:
  token_sli:
  otlp_http: {endpoint: "http://%[1]s", timeout: 0s, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, token_sli/connected]}
    traces/backend: {receivers: [token_stream/open], exporters: [otlp_http]}
    metrics: {receivers: [token_sli/connected], exporters: [otlp_http]}
    logs: {receivers: [token_sli/connected], exporters: [otlp_http]}
    metrics/series: {receivers: [token_stream/series], exporters: [otlp_http]}
`

// A reload starts all components anew, whatever the old ones could not deliver, and the
// Collector exits with status 0.
func TestReload_GoesOnWhenTheBackendIsDown(t *testing.T) {
	t.Parallel()
	hanging, err := net.Listen("tcp", "localhost:0") // accepts connections, and never answers
	require.NoError(t, err)
	t.Cleanup(func() { _ = hanging.Close() })
	for name, backend := range map[string]string{"refuses": collector.FreeAddress(t), "hangs": hanging.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			series, open := collector.FreeAddress(t), collector.FreeAddress(t)
			c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", fmt.Sprintf(withoutBackend, backend, series, open)))
			begin := time.Now().Add(-time.Second)
			ended := []string{tokenevents.Line("start", "s", begin, ""), tokenevents.Line("chunk", "s", begin, ""), tokenevents.Line("end", "s", begin.Add(time.Second), "")}
			for address, lines := range map[string][]string{c.HTTP: ended, series: ended, open: ended[:2]} {
				_, err := tokenevents.PostLines(address, strings.Join(lines, "\n")+"\n")
				require.NoError(t, err)
			}
			c.Reload(t)
			c.WaitFor(t, c.MetricsURL())
			for _, loss := range []string{"lost the data of the last flush", "lost open streams"} {
				require.Contains(t, c.Output(t), loss)
			}
			c.Stop(t)
			require.Zero(t, c.Command.ProcessState.ExitCode())
		})
	}
}
