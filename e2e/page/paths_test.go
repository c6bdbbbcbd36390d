// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// pageOfSpans and pageOfMetrics show the same requests on the live page: the first from
// their spans, the second from the receiver's series and a share of the spans.
const (
	pageOfSpans = `
receivers: {token_stream: }
processors:
  token_latency: &latency
    timeline: keep
    slos: [{name: chat-ttft, indicator: time_to_first_token, threshold: 1s}]
exporters:
  token_sli: {objectives: [{slo: chat-ttft, objective: 0.75}]}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}
`
	pageOfMetrics = `
receivers:
  token_stream:
    latency:
      timeline: keep
      slos: [{name: chat-ttft, indicator: time_to_first_token, threshold: 1s}]
    series: {metrics_flush_interval: 100ms}
    spans: {share: %v, breached: %v}
exporters:
  token_sli: {objectives: [{slo: chat-ttft, objective: 0.75}]}
  otlp_http: {endpoint: %q, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], exporters: [token_sli, otlp_http]}
    metrics: {receivers: [token_stream], exporters: [token_sli]}
`
)

// pageStream is a stream of both pages. Every seventh breaches chat-ttft, every fifth fails
// after its first token, and every eleventh has one token.
type pageStream struct {
	number   int
	trace    [16]byte
	first    time.Duration
	perToken time.Duration
}

func (s pageStream) breached() bool { return s.first > time.Second }

func (s pageStream) tokens() int {
	if s.number%5 == 0 || s.number%11 == 0 {
		return 1
	}
	return 20
}

func pageStreams() []pageStream {
	random := rand.New(rand.NewPCG(5, 6))
	all := make([]pageStream, 180)
	for i := range all {
		s := pageStream{number: i, first: time.Duration(50+random.IntN(900)) * time.Millisecond, perToken: time.Duration(10+random.IntN(50)) * time.Millisecond}
		if i%7 == 0 {
			s.first += time.Second
		}
		binary.BigEndian.PutUint64(s.trace[:], uint64(i+1))
		binary.BigEndian.PutUint64(s.trace[8:], random.Uint64())
		all[i] = s
	}
	return all
}

// write writes the events of a stream. A third of the streams stalls before the last token.
func (s pageStream) write(to *strings.Builder, begin time.Time) {
	event := tokenevents.EventsOf(to, fmt.Sprint("page-", s.number), begin)
	event("start", 0, fmt.Sprintf(`,"trace_id":"%x","attributes":{"gen_ai.request.model":"model-%d"}`, s.trace, s.number%2))
	event("scheduled", s.first/4, "")
	at := s.first
	for i := range s.tokens() {
		if i > 0 {
			at += s.perToken
		}
		if i == 19 && s.number%3 == 0 {
			at += time.Second
		}
		event("chunk", at, "")
	}
	more := fmt.Sprintf(`,"usage":{"input_tokens":%d,"output_tokens":%d}`, 100+s.number, s.tokens())
	if s.number%5 == 0 {
		more = `,"error":"overloaded"`
	}
	event("end", at+time.Millisecond, more)
}

// pageNow waits until the page has that many requests that succeeded.
func pageNow(t *testing.T, c *collector.Collector, requests int) (now collector.LivePageAnswer) {
	t.Helper()
	require.Eventually(t, func() bool {
		now = collector.LivePageAnswer{}
		c.AskPage(t, "now?range=1h&outcome=success", &now)
		return now.Requests["success"] == requests
	}, collector.Patience, 100*time.Millisecond, "%v", now)
	return now
}

// historyOf returns the requests by model and the rows of the heatmap, added up over time.
func historyOf(t *testing.T, c *collector.Collector) (byModel map[string]int, rows []int) {
	t.Helper()
	var trends struct {
		Groups []struct {
			Value    string
			Requests int
		}
	}
	c.AskPage(t, "trends?range=1h", &trends)
	byModel = map[string]int{}
	for _, g := range trends.Groups {
		byModel[g.Value] = g.Requests
	}
	var heatmap struct {
		Bounds []float64
		Counts [][]int
	}
	c.AskPage(t, "heatmap?range=1h", &heatmap)
	rows = make([]int, len(heatmap.Bounds)-1)
	for _, counts := range heatmap.Counts {
		for row, n := range counts {
			rows[row] += n
		}
	}
	return byModel, rows
}

type slowRequest struct {
	Trace    string   `json:"trace_id"`
	Outcome  string   `json:"outcome"`
	Duration float64  `json:"request_duration"`
	First    float64  `json:"time_to_first_token"`
	HasStrip bool     `json:"has_strip"`
	Breached []string `json:"slos_breached"`
}

func slowRequests(t *testing.T, c *collector.Collector) (all []slowRequest) {
	t.Helper()
	for model := range 2 {
		var slowest struct{ Requests []slowRequest }
		c.AskPage(t, fmt.Sprintf("requests?limit=100&where=gen_ai.request.model%%3Dmodel-%d", model), &slowest)
		all = append(all, slowest.Requests...)
	}
	return all
}

// One page gets spans, another metrics and a share of the spans, which arrive twice because
// the other exporter of their pipeline refuses them at first. Both show the same numbers.
func TestLivePage_IsTheSameFromSpansAndFromMetrics(t *testing.T) {
	t.Parallel()
	streams := pageStreams()
	var body strings.Builder
	var toFirst []float64
	for _, s := range streams {
		s.write(&body, time.Now().Add(-time.Minute))
		if s.number%5 > 0 {
			toFirst = append(toFirst, s.first.Seconds())
		}
	}
	slices.Sort(toFirst)
	ofSpans := collector.Start(t, collector.WriteFile(t, t.TempDir(), "spans.yaml", pageOfSpans))
	ofSpans.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
	want := pageNow(t, ofSpans, len(streams)*4/5)
	for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		require.InEpsilon(t, reference.NearestRank(toFirst, q), want.Indicators["time_to_first_token"][name], 0.0056, name)
	}
	wantModels, wantRows := historyOf(t, ofSpans)
	byTrace := map[string]slowRequest{}
	for _, r := range slowRequests(t, ofSpans) {
		byTrace[r.Trace] = r
	}
	require.Len(t, byTrace, len(streams))

	for _, selection := range []struct {
		share     float64
		breached  bool
		threshold uint64 // of the last 56 bits of a trace ID
	}{{0.01, true, 0xfd70a000000000}, {0.125, false, 0xe0000000000000}, {0.5, true, 1 << 55}} {
		t.Run(fmt.Sprint(selection.share, selection.breached), func(t *testing.T) {
			var deliveries atomic.Int32
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if deliveries.Add(1) == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			defer backend.Close()
			c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "metrics.yaml", fmt.Sprintf(pageOfMetrics, selection.share, selection.breached, backend.URL)))
			refused, err := http.Post("http://"+c.HTTP+"/v1/tokens", "application/x-ndjson", strings.NewReader(body.String()))
			require.NoError(t, err)
			require.NoError(t, refused.Body.Close())
			require.Equal(t, http.StatusServiceUnavailable, refused.StatusCode)
			c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
			require.GreaterOrEqual(t, deliveries.Load(), int32(2))

			got := pageNow(t, c, len(streams)*4/5)
			require.Equal(t, want.Requests, got.Requests)
			require.Equal(t, want.Tokens, got.Tokens)
			require.InDelta(t, want.Stalls.Count, got.Stalls.Count, 0)
			require.InEpsilon(t, want.Stalls.Seconds, got.Stalls.Seconds, 1e-12)
			require.Equal(t, want.Unmeasured, got.Unmeasured)
			for name, numbers := range want.Indicators {
				require.Contains(t, got.Indicators, name)
				for statistic, value := range numbers {
					of := name + " " + statistic
					switch statistic {
					case "count":
						require.InDelta(t, value, got.Indicators[name][statistic], 0, of)
					case "mean":
						require.InDelta(t, value, got.Indicators[name][statistic], 1e-12, of)
					default: // metrics have buckets and no values
						require.InDelta(t, value, got.Indicators[name][statistic], 0.011*value, of)
					}
				}
			}
			require.Equal(t, want.SLOs, got.SLOs)
			gotModels, gotRows := historyOf(t, c)
			require.Equal(t, wantModels, gotModels)
			require.Equal(t, wantRows, gotRows)

			var selected, slowest []slowRequest
			for _, s := range streams {
				randomness := binary.BigEndian.Uint64(s.trace[8:]) & (1<<56 - 1)
				if randomness >= selection.threshold || selection.breached && s.breached() {
					selected = append(selected, byTrace[fmt.Sprintf("%x", s.trace)])
				}
			}
			slowest = slowRequests(t, c)
			require.Len(t, slowest, len(selected), "each once")
			require.ElementsMatch(t, selected, slowest)
			for _, r := range slowest {
				require.True(t, r.HasStrip)
			}
		})
	}
}

// Where only metrics and few spans arrive, the page names what its empty parts need.
func TestLivePage_SaysWhatFillsThePartsThatMetricsLeaveEmpty(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer backend.Close()
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "metrics.yaml", fmt.Sprintf(pageOfMetrics, 0.01, false, backend.URL)))
	var body strings.Builder
	for _, s := range pageStreams() {
		s.write(&body, time.Now().Add(-time.Minute))
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	p.show("prompts")
	p.waitUntil(`document.querySelector('#prompts .nodata').textContent.includes('take token_stream out of metrics pipelines')`)
	p.screenshot("metrics-only")
	c = collector.Start(t, collector.WriteFile(t, t.TempDir(), "metrics.yaml", fmt.Sprintf(pageOfMetrics, 0.01, false, backend.URL)),
		"--config=yaml:receivers: {token_stream: {series: "+collector.DimensionsWithBands+"}}", "--config=yaml:exporters: {token_sli: "+collector.DimensionsWithBands+"}")
	c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
	banded := openTab(t, c.PageURL(""))
	banded.waitUntilLoaded()
	banded.show("prompts")
	banded.waitUntil(`/^[1-9][0-9]* requests$/.test(document.querySelector('#prompts .caption').textContent) && document.querySelector('#prompts .keys').textContent.includes('cached below 10%')`)
	banded.screenshot("metrics-with-bands")
	p.do(script(`scrollTo(0, 0)`))
	p.waitUntil(`[...document.querySelectorAll('.slo')].some(card => card.textContent.startsWith('chat-ttft') && card.textContent.includes('Time to first token ≤ 1 s'))`)
}
