// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// Collector is a running Collector and its addresses.
type Collector struct {
	*Process
	HTTP, GRPC, Metrics string
}

// MetricsURL returns the address of a scrape.
func (c *Collector) MetricsURL() string { return fmt.Sprintf("http://%s/metrics", c.Metrics) }

// Endpoint returns the address that a tokenpulse transport sends to.
func (c *Collector) Endpoint(transport string) string {
	if transport == "grpc" || transport == "grpc-stream" {
		return c.GRPC
	}
	return c.HTTP
}

// OwnMetricsOff turns off the Collector's own metrics, which examples have on a fixed port.
const OwnMetricsOff = "--set=service.telemetry.metrics.level=none"

// Start runs the Collector with a config file, unused ports, and optional
// further arguments.
func Start(t *testing.T, config string, more ...string) *Collector {
	t.Helper()
	c := &Collector{HTTP: FreeAddress(t), GRPC: FreeAddress(t), Metrics: FreeAddress(t)}
	if strings.HasPrefix(config, filepath.Join(testenv.Root(t), "examples")) {
		more = append([]string{OwnMetricsOff}, more...)
	}
	arguments := append([]string{
		"--config", config,
		"--set", "receivers.token_stream.protocols.http.endpoint=" + c.HTTP,
		"--set", "receivers.token_stream.protocols.grpc.endpoint=" + c.GRPC,
		"--set", "exporters.token_sli.endpoint=" + c.Metrics,
		// Tests have seconds where users have minutes. TestFirstErrors has a scaled zero_for.
		"--set", "exporters.token_sli.zero_for=0s",
	}, more...)
	c.Process = StartProcess(t, underTest(t), arguments...)
	c.WaitFor(t, c.MetricsURL())
	c.WaitUntilReady(t)
	return c
}

// StartPushing runs the Collector with a config without a scrape endpoint.
func StartPushing(t *testing.T, config string, more ...string) *Collector {
	t.Helper()
	c := &Collector{HTTP: FreeAddress(t), GRPC: FreeAddress(t)}
	c.Process = StartProcess(t, Built(t, "otelcol-tokenpulse"), append([]string{
		"--config", config, OwnMetricsOff,
		"--set", "receivers.token_stream.protocols.http.endpoint=" + c.HTTP,
		"--set", "receivers.token_stream.protocols.grpc.endpoint=" + c.GRPC,
	}, more...)...)
	c.WaitForListener(t, c.HTTP)
	return c
}

// FullDetail are arguments of Start that make the processor write every number.
var FullDetail = []string{"--set", "processors.token_latency.detail=full"}

// EveryMetric switches on what is off by default, for tests of the numbers. It
// extends configurations with the token_sli exporter.
const EveryMetric = `
exporters:
  token_sli:
    percentiles: [50, 90, 95, 99, 99.9]
    windows: [1m, 5m, 1h]
    metrics:
      tokenpulse.time_to_first_output_token: {enabled: true}
      tokenpulse.time_to_first_output_token.percentile: {enabled: true}
      tokenpulse.output_token_rate: {enabled: true}
      tokenpulse.output_token_rate.percentile: {enabled: true}
      tokenpulse.request_token_rate: {enabled: true}
      tokenpulse.request_token_rate.percentile: {enabled: true}
      tokenpulse.prefill_token_rate: {enabled: true}
      tokenpulse.prefill_token_rate.percentile: {enabled: true}
      tokenpulse.inter_chunk_latency: {enabled: true}
      tokenpulse.inter_chunk_latency.percentile: {enabled: true}
      tokenpulse.time_per_token: {enabled: true}
      tokenpulse.time_per_token.percentile: {enabled: true}
      tokenpulse.tokens_per_chunk: {enabled: true}
      tokenpulse.tokens_per_chunk.percentile: {enabled: true}
      tokenpulse.phase.duration.percentile: {enabled: true}
`

// DimensionsWithBands are settings of exporter, connector and receiver.
const DimensionsWithBands = `{dimensions: [
  service.name,
  {attribute: gen_ai.usage.input_tokens, bands: [250, 400, 550], label: prompt_tokens},
  {attribute: gen_ai.usage.output_tokens, bands: [2, 100, 193], label: answer_tokens},
  {attribute: tokenpulse.cached_input.share, bands: [0.1, 0.5]},
]}`

// PostSpans sends OTLP spans over HTTP.
func PostSpans(t *testing.T, address, contentType string, body []byte) {
	t.Helper()
	response, err := http.Post("http://"+address+"/v1/traces", contentType, bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// Again restarts a Collector that has exited, with the same config and ports.
func (c *Collector) Again(t *testing.T) *Collector {
	t.Helper()
	next := &Collector{HTTP: c.HTTP, GRPC: c.GRPC, Metrics: c.Metrics}
	next.Process = StartProcess(t, c.Command.Path, c.Command.Args[1:]...)
	next.WaitFor(t, next.MetricsURL())
	next.WaitUntilReady(t)
	return next
}

// Reload sends SIGHUP, and waits until all parts of the Collector have started again.
func (c *Collector) Reload(t *testing.T) {
	t.Helper()
	before := c.starts(t)
	c.Signal(syscall.SIGHUP)
	require.Eventually(t, func() bool {
		select {
		case <-c.Exited:
			require.Fail(t, "the reload ended the Collector")
		default:
		}
		return c.starts(t) > before
	}, 2*Patience, 10*time.Millisecond, "the Collector does not start again")
}

// Post sends a body, and checks that the receiver accepts all of it.
func (c *Collector) Post(t *testing.T, contentType string, body io.Reader) {
	t.Helper()
	response, err := http.Post(fmt.Sprintf("http://%s/v1/tokens", c.HTTP), contentType, body)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", answer)
	require.Contains(t, string(answer), `"rejected":0`)
}

// Connect returns a gRPC connection that lasts until the end of the test.
func (c *Collector) Connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(c.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// TokenStreams returns a client of the receiver's gRPC service.
func (c *Collector) TokenStreams(t *testing.T) tokenpulsev1.TokenStreamServiceClient {
	t.Helper()
	return tokenpulsev1.NewTokenStreamServiceClient(c.Connect(t))
}

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

// WithSelfMetrics returns an address, and the arguments of a Collector that reports its
// self-metrics there.
func WithSelfMetrics(t *testing.T) (address string, arguments []string) {
	t.Helper()
	address = FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	Setenv(t, "SELF_METRICS_PORT", port)
	return address, []string{"--config", WriteFile(t, t.TempDir(), "self.yaml", selfMetricsConfig)}
}
