// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// pageOfTwoReceivers shows the requests of a token_stream and a token_tap.
const pageOfTwoReceivers = `
receivers:
  token_stream:
  token_tap: {endpoint: %q, upstream: {endpoint: %q}}
processors:
  token_latency:
    slos: [{name: chat-ttft, indicator: time_to_first_token, threshold: 1s}]
exporters:
  token_sli: {objectives: [{slo: chat-ttft, objective: 0.75}]}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream, token_tap], processors: [token_latency], exporters: [token_sli]}
`

// pageOfOtherCollector shows the spans that another Collector sends.
const pageOfOtherCollector = `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters:
  token_sli: {objectives: [{slo: chat-ttft, objective: 0.75}]}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [token_sli]}
`

// components is what the page shows of the components beside the exporter.
type components struct {
	OpenStreams *int64 `json:"open_streams"`
	SLOs        []pageSLO
}

type pageSLO struct {
	SLO       string
	Indicator *string
	Threshold *float64
	Good, Bad int
}

func (c *components) chatTTFT(t *testing.T) pageSLO {
	t.Helper()
	i := slices.IndexFunc(c.SLOs, func(s pageSLO) bool { return s.SLO == "chat-ttft" })
	require.GreaterOrEqual(t, i, 0, "%v", c.SLOs)
	return c.SLOs[i]
}

// waitForOpenStreams waits until the page has that many open streams.
func waitForOpenStreams(t *testing.T, c *collector.Collector, want int64) (now components) {
	t.Helper()
	require.Eventually(t, func() bool {
		now = components{}
		c.AskPage(t, "now", &now)
		return now.OpenStreams != nil && *now.OpenStreams == want
	}, collector.Patience, 100*time.Millisecond, "%d open streams", want)
	return now
}

// postEach posts an event of each of some streams. at is the time after their start.
func postEach(t *testing.T, c *collector.Collector, kind string, start time.Time, at time.Duration, streams ...int) {
	t.Helper()
	var all strings.Builder
	for _, stream := range streams {
		tokenevents.EventsOf(&all, fmt.Sprint("open-", stream), start)(kind, at, "")
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(all.String()))
}

// The page has the threshold before the first request, and counts the streams between begin and end: of
// receivers in pipelines of traces, and of one receiver that several pipelines share.
func TestLivePage_ShowsOpenStreamsAndThresholdsOfItsCollector(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	defer end()
	upstream := llmservice.Start(t, func(w http.ResponseWriter, _ *http.Request) {
		llmservice.WriteChunks(w, 1)
		<-ended.Done()
		_, _ = w.Write([]byte(llmservice.ChatEnd))
	})
	backend := llmservice.Start(t, func(http.ResponseWriter, *http.Request) {})
	tap := collector.FreeAddress(t)
	for name, test := range map[string]struct {
		config string
		taps   int64
	}{
		"spans":   {fmt.Sprintf(pageOfTwoReceivers, tap, upstream.URL), 2},
		"metrics": {fmt.Sprintf(pageOfMetrics, 1.0, false, backend.URL), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "page.yaml", test.config), "--set", "receivers.token_stream.idle_timeout=10m")
			requireThreshold := func(now components) {
				t.Helper()
				slo := now.chatTTFT(t)
				require.NotNil(t, slo.Threshold)
				require.InDelta(t, 1, *slo.Threshold, 0)
				require.Equal(t, "time_to_first_token", *slo.Indicator)
			}
			requireThreshold(waitForOpenStreams(t, c, 0))
			var meta components
			c.AskPage(t, "meta", &meta)
			requireThreshold(meta)

			begin := time.Now().Add(-time.Minute)
			postEach(t, c, "start", begin, 0, 1, 2, 3, 4, 5)
			postEach(t, c, "chunk", begin, 100*time.Millisecond, 1, 2, 3)
			waitForOpenStreams(t, c, 5)
			answers := make(chan error, test.taps)
			for range test.taps {
				go func() {
					response, err := http.Post("http://"+tap+llmservice.ChatPath, "application/json", strings.NewReader(llmservice.ChatAsked))
					if err == nil {
						_, err = io.Copy(io.Discard, response.Body)
						_ = response.Body.Close()
					}
					answers <- err
				}()
			}
			waitForOpenStreams(t, c, 5+test.taps)
			postEach(t, c, "end", begin, 200*time.Millisecond, 1, 2)
			waitForOpenStreams(t, c, 3+test.taps)

			var beforeBreach components
			c.AskPage(t, "now", &beforeBreach)
			requireThreshold(beforeBreach)
			require.Zero(t, beforeBreach.chatTTFT(t).Bad)
			p := openTab(t, c.PageURL(""))
			p.waitUntil(fmt.Sprintf("%s === '%d'", shownTile("Open streams"), 3+test.taps))
			p.waitUntil(`[...document.querySelectorAll('.slo')].some(card => card.textContent.startsWith('chat-ttft') && card.textContent.includes('Time to first token ≤ 1 s'))`)
			postEach(t, c, "end", begin, 200*time.Millisecond, 3, 4, 5)
			p.waitUntil(fmt.Sprintf("%s === '%d'", shownTile("Open streams"), test.taps))
			if test.taps > 0 {
				end()
			}
			for range test.taps {
				require.NoError(t, <-answers)
			}
			requireThreshold(waitForOpenStreams(t, c, 0))
		})
	}
}

// shownTile returns JavaScript that reads the value of a tile, or undefined without one in view.
func shownTile(name string) string {
	return `[...document.querySelectorAll('.tile')].find(tile => tile.checkVisibility() && tile.querySelector('dt').textContent === '` + name + `')?.querySelector('.value').textContent`
}

// An exporter without receivers and processors in its Collector has neither. It learns the threshold from
// the first breach.
func TestLivePage_LearnsThresholdsOfAnotherCollectorFromABreach(t *testing.T) {
	t.Parallel()
	otlp := collector.FreeAddress(t)
	gateway := startPageWithoutReceiver(t, otlp)
	agent := collector.Start(t, collector.WriteFile(t, t.TempDir(), "agent.yaml", fmt.Sprintf(`
receivers: {token_stream: }
processors:
  token_latency:
    slos: [{name: chat-ttft, indicator: time_to_first_token, threshold: 1s}]
exporters:
  token_sli:
  otlp_http: {endpoint: "http://%s", sending_queue: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, otlp_http]}
`, otlp)))
	send := func(stream string, first time.Duration) {
		var body strings.Builder
		event := tokenevents.EventsOf(&body, stream, time.Now().Add(-time.Minute))
		event("start", 0, `,"attributes":{"gen_ai.request.model":"m"}`)
		event("chunk", first, "")
		event("end", first, "")
		agent.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
	}
	verdicts := func(good, bad int) (now components) {
		t.Helper()
		require.Eventually(t, func() bool {
			now = components{}
			gateway.AskPage(t, "now", &now)
			slo := now.chatTTFT(t)
			return slo.Good == good && slo.Bad == bad
		}, collector.Patience, 100*time.Millisecond)
		return now
	}
	send("good", 500*time.Millisecond)
	now := verdicts(1, 0)
	require.Nil(t, now.OpenStreams)
	require.Nil(t, now.chatTTFT(t).Threshold)
	p := openTab(t, gateway.PageURL(""))
	p.waitUntilLoaded()
	p.waitUntil(`[...document.querySelectorAll('.slo')].some(card => card.textContent.includes('threshold appears after the first breach'))`)
	require.True(t, p.is(shownTile("In flight")+` !== undefined`))
	require.True(t, p.is(shownTile("Open streams")+` === undefined`))

	send("bad", 2*time.Second)
	now = verdicts(1, 1)
	require.Nil(t, now.OpenStreams)
	require.NotNil(t, now.chatTTFT(t).Threshold)
	require.InDelta(t, 1, *now.chatTTFT(t).Threshold, 0)
	p.waitUntil(`[...document.querySelectorAll('.slo')].some(card => card.textContent.includes('Time to first token ≤ 1 s'))`)
}

// startPageWithoutReceiver starts a Collector that has no receiver but otlp.
func startPageWithoutReceiver(t *testing.T, otlp string) *collector.Collector {
	t.Helper()
	c := &collector.Collector{Metrics: collector.FreeAddress(t)}
	config := collector.WriteFile(t, t.TempDir(), "gateway.yaml", fmt.Sprintf(pageOfOtherCollector, otlp))
	c.Process = collector.StartProcess(t, collector.Built(t, "otelcol-tokenpulse"), "--config", config, "--set", "exporters.token_sli.endpoint="+c.Metrics)
	c.WaitFor(t, c.MetricsURL())
	return c
}
