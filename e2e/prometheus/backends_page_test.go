// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// toRemoteWrite sends what Grafana Cloud gets to a Prometheus, which does not take
// histograms over OTLP before 3.0.
const toRemoteWrite = `
connectors:
  token_sli/push: {metrics_flush_interval: 500ms}
exporters:
  nop:
  prometheus_remote_write: {http: {endpoint: "${env:REMOTE_WRITE_ENDPOINT}"}, disable_scope_info: true}
service:
  pipelines:
    traces/stored: {exporters: [nop]}
    metrics: {exporters: [prometheus_remote_write]}
`

// Of 40 requests, two miss the SLO on time to first token, and the others wait 10 to 380 ms.
func TestBackendsPage_PromQLAnswers(t *testing.T) {
	t.Parallel()
	server := promserver.Run(t, testenv.Program(t, "prometheus"), "", "--web.enable-remote-write-receiver", "--enable-feature", "native-histograms")
	collector.Setenv(t, "REMOTE_WRITE_ENDPOINT", "http://"+server.Address+"/api/v1/write")
	collector.Setenv(t, "GRAFANA_CLOUD_INSTANCE_ID", "1")
	collector.Setenv(t, "GRAFANA_CLOUD_TOKEN", "secret")
	c := collector.StartPushing(t, collector.Example(t, "backends/common.yaml"), "--config", collector.Example(t, "backends/grafana-cloud.yaml"),
		"--config", collector.WriteFile(t, t.TempDir(), "write.yaml", toRemoteWrite), "--set=exporters.otlp_http.endpoint=http://localhost")

	var lines strings.Builder
	begin := time.Now().Add(-3 * time.Second)
	for i := 1; i <= 40; i++ {
		write := tokenevents.EventsOf(&lines, strconv.Itoa(i), begin)
		first := time.Duration(i) * 10 * time.Millisecond
		if i > 38 {
			first = 2 * time.Second
		}
		write("start", 0, `,"attributes":{"gen_ai.request.model":"llama"}`)
		for token := range 11 {
			write("chunk", first+time.Duration(token)*20*time.Millisecond, "")
		}
		write("end", first+200*time.Millisecond, "")
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(lines.String()))

	queries := regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(markdown.Read(t, "docs/backends.md"), -1)
	want := []float64{0.38, 0.02, 2.0 / 40 / 0.05}
	require.Len(t, queries, len(want))
	for i, query := range queries {
		server.WaitUntil(t, query[1]+" > 0")
		require.InEpsilon(t, want[i], server.Query(t, query[1]), 0.011, query[1])
	}
}
