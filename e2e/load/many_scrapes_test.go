// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

var manySeries = flag.Int("many-series", 10_000, "series of TestManyScrapes_StayWithinTwiceTheMemory")

// manySeriesConfig has a series per tenant, and room for as many as one service may open.
const manySeriesConfig = `
receivers: {token_stream: {}}
processors: {token_latency: {}}
exporters:
  token_sli:
    dimensions: [gen_ai.request.model, tenant]
    max_series: %d
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}
  telemetry: {metrics: {level: none}}
`

// sendTenants sends a stream of 20 tokens for each tenant. The IDs of streams contain the round.
func sendTenants(t *testing.T, c *collector.Collector, tenants, round int) {
	t.Helper()
	const perRequest = 200
	begin := time.Now().Add(-time.Minute)
	for first := 0; first < tenants; first += perRequest {
		var body bytes.Buffer
		for i := first; i < min(first+perRequest, tenants); i++ {
			at := begin
			event := func(kind, rest string) {
				fmt.Fprintf(&body, "{\"event\":%q,\"stream_id\":\"s%d-%d\",\"time_unix_nano\":\"%d\"%s}\n", kind, round, i, at.UnixNano(), rest)
			}
			event("start", fmt.Sprintf(`,"attributes":{"gen_ai.request.model":"m%d","tenant":"tenant-%d"}`, i%100, i))
			for token := range 20 {
				at = at.Add(time.Duration(15+(i+7*token)%11) * time.Millisecond)
				event("chunk", "")
			}
			event("end", `,"finish_reason":"stop"`)
		}
		response, err := http.Post("http://"+c.HTTP+"/v1/tokens", "application/x-ndjson", &body)
		require.NoError(t, err)
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Contains(t, string(answer), `"rejected":0`)
	}
}

// Twenty-six scrapes at once, of a format or of all, each get an answer or a 503 within their time-out. The memory
// of the Collector stays under twice that of the idle one.
func TestManyScrapes_StayWithinTwiceTheMemory(t *testing.T) {
	config := collector.WriteFile(t, t.TempDir(), "config.yaml", fmt.Sprintf(manySeriesConfig, 2**manySeries+2))
	c := collector.Start(t, config)
	sendTenants(t, c, *manySeries, 0)
	const scrapes, timeout = 26, 10
	idle := c.Memory(t, "VmRSS")
	formats := []string{
		"text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0",
		"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
	}
	scrapeAtOnce := func(name string, scrapes int, encodings []string, formats ...string) {
		var mu sync.Mutex
		statuses := map[int]int{}
		before, began := c.ProcessorTime(t), time.Now()
		var group sync.WaitGroup
		for i := range scrapes {
			group.Go(func() {
				client := http.Client{Timeout: timeout * time.Second, Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
				r, _ := http.NewRequest(http.MethodGet, c.MetricsURL(), http.NoBody)
				r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.Itoa(timeout))
				r.Header.Set("Accept", formats[i%len(formats)])
				r.Header.Set("Accept-Encoding", encodings[i%len(encodings)])
				response, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				if n, err := io.Copy(io.Discard, response.Body); err != nil {
					t.Errorf("status %d, then %v after %d bytes", response.StatusCode, err, n)
				}
				mu.Lock()
				defer mu.Unlock()
				statuses[response.StatusCode]++
			})
		}
		group.Wait()
		memory := c.PeakMemory(t)
		t.Logf("%s, %d at once: %v in %.1f s, with %.1f s of CPU; memory %d MiB, %.2f times the %d MiB before", name, scrapes, statuses,
			time.Since(began).Seconds(), (c.ProcessorTime(t) - before).Seconds(), memory>>20, float64(memory)/float64(idle), idle>>20)
		assert.Equal(t, scrapes, statuses[http.StatusOK]+statuses[http.StatusServiceUnavailable], "%v", statuses)
		assert.Less(t, memory, 2*idle)
	}
	gzip := []string{"gzip"}
	for _, format := range formats {
		scrapeAtOnce(format, 1, gzip, format)
	}
	for _, format := range formats {
		scrapeAtOnce(format, scrapes, gzip, format)
	}
	scrapeAtOnce("all formats", scrapes, gzip, formats...)
	scrapeAtOnce("all formats, half uncompressed", scrapes, []string{"gzip", "identity"}, formats...)
}
