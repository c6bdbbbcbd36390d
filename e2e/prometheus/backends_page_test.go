// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"io"
	"regexp"
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

// Of 40 requests, one misses the SLO on time to first token, and the others wait 10 to 360 ms.
func TestBackendsPage_PromQLAnswers(t *testing.T) {
	t.Parallel()
	server := promserver.Run(t, testenv.Program(t, "prometheus"), "", "--web.enable-remote-write-receiver", "--enable-feature", "native-histograms")
	collector.Setenv(t, "REMOTE_WRITE_ENDPOINT", "http://"+server.Address+"/api/v1/write")
	collector.Setenv(t, "GRAFANA_CLOUD_INSTANCE_ID", "1")
	collector.Setenv(t, "GRAFANA_CLOUD_TOKEN", "secret")
	c := collector.StartPushing(t, collector.Example(t, "backends/common.yaml"), "--config", collector.Example(t, "backends/grafana-cloud.yaml"),
		"--config", collector.WriteFile(t, t.TempDir(), "write.yaml", toRemoteWrite), "--set=exporters.otlp_http.endpoint=http://localhost")

	begin := time.Now().Add(-3 * time.Second)
	request := func(to io.Writer, id string, first time.Duration) {
		write := tokenevents.EventsOf(to, id, begin)
		write("start", 0, `,"attributes":{"gen_ai.request.model":"llama"}`)
		for token := range 11 {
			write("chunk", first+time.Duration(token)*20*time.Millisecond, "")
		}
		write("end", first+200*time.Millisecond, "")
	}
	var lines strings.Builder
	post := func(sent int) {
		c.Post(t, "application/x-ndjson", strings.NewReader(lines.String()))
		lines.Reset()
		server.WaitUntil(t, fmt.Sprintf(`sum(tokenpulse_requests_total) == %d`, sent))
	}
	// A flush may come between two requests, and a rate may leave out the first value of a counter: both parts are alike. Several
	// requests have the time that the query asks for: the float of a rate may fall on either side of a rank.
	for part := 1; part <= 2; part++ {
		for i := 1; i <= 40; i++ {
			first := time.Duration(min(i, 36)) * 10 * time.Millisecond
			if i == 40 {
				first = 2 * time.Second
			}
			request(&lines, fmt.Sprint(part, "-", i), first)
		}
		post(40 * part)
	}

	queries := regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(markdown.Read(t, "docs/backends.md"), -1)
	want := []float64{0.36, 0.02, 1.0 / 40 / 0.05}
	require.Len(t, queries, len(want))
	for i, query := range queries {
		server.WaitUntil(t, query[1]+" > 0")
		require.InEpsilon(t, want[i], server.Query(t, query[1]), 0.011, query[1])
	}
}
