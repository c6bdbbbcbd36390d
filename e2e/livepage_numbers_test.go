// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// loadConfig serves the page, and writes the spans that it shows to a file.
const loadConfig = `
receivers: {token_stream: }
processors:
  token_latency:
    slos: [{name: chat-ttft, indicator: time_to_first_token, threshold: 600ms}]
exporters:
  token_sli: {objectives: [{slo: chat-ttft, objective: 0.75}]}
  file: {path: %q}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, file]}
`

const pageSlot = 5 * time.Second // the width of a slot of the range 5m

// sendLoads sends requests in several slots of the page's history, some more than in
// others. All of a slot end at the same time within it, which their spans then say. It
// returns false if the machine was too slow to send them within their slot.
func sendLoads(t *testing.T, c *collector) bool {
	t.Helper()
	random, number := rand.New(rand.NewPCG(7, 8)), 0
	for _, requests := range []int{4, 40, 5, 90, 12, 85} {
		time.Sleep(time.Until(time.Now().Truncate(pageSlot).Add(pageSlot + 200*time.Millisecond)))
		slot := time.Now().Truncate(pageSlot)
		var body strings.Builder
		for range requests {
			number++
			// The first token takes longer under load.
			first := time.Duration((200 + 6*float64(requests)) * (0.5 + random.Float64()) * float64(time.Millisecond))
			perToken := time.Duration(10+random.IntN(30)) * time.Millisecond
			tokens := 1 + random.IntN(60)
			duration := first + time.Duration(tokens-1)*perToken
			event := eventsOf(&body, fmt.Sprint("load-", number), slot.Add(200*time.Millisecond-duration))
			event("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":"model-%d"}`, number%2))
			event("scheduled", first/4, "")
			for i := range tokens {
				event("chunk", first+time.Duration(i)*perToken, "")
			}
			more := fmt.Sprintf(`,"usage":{"input_tokens":%d,"output_tokens":%d}`, 50+number, tokens)
			if number%9 == 0 {
				more += `,"error":"overloaded"`
			}
			event("end", duration, more)
		}
		c.post(t, "application/x-ndjson", strings.NewReader(body.String()))
		if !time.Now().Truncate(pageSlot).Equal(slot) {
			return false
		}
	}
	return true
}

// startLoaded returns a Collector that has served loads, and the spans that it wrote.
func startLoaded(t *testing.T) (*collector, []ptrace.Span) {
	t.Helper()
	for range 5 {
		file := filepath.Join(t.TempDir(), "spans.jsonl")
		c := startCollector(t, writeFile(t, t.TempDir(), "load.yaml", fmt.Sprintf(loadConfig, file)))
		if !sendLoads(t, c) {
			c.stop(t)
			continue
		}
		var spans []ptrace.Span
		require.Eventually(t, func() bool { // the file exporter flushes every second
			spans = readSpans(t, file)
			return len(spans) == 4+40+5+90+12+85
		}, patience, 200*time.Millisecond)
		return c, spans
	}
	require.Fail(t, "the machine is too slow to send each load within 5 s")
	return nil, nil
}

type pageLoadPoint struct {
	Load, From, To     float64
	Slots, Requests    int
	TimeToFirstToken   map[string]float64 `json:"time_to_first_token"`
	TimePerOutputToken map[string]float64 `json:"time_per_output_token"`
	SLOs               []struct {
		SLO        string
		Good, Bad  int
		Attainment float64
	}
}

type pageLoadCurve struct {
	Points []pageLoadPoint
	SLOs   []struct {
		SLO         string
		LargestLoad *float64 `json:"largest_load"`
	}
}

// slotOfSpans is what the spans that ended in one slot add up to.
type slotOfSpans struct{ seconds, tokens float64 }

// The curve of speed against load is that of the spans in the file: each slot's load from
// their durations and tokens, percentiles from their sorted values.
func TestLivePage_LoadCurveEqualsTheSpanFile(t *testing.T) {
	c, spans := startLoaded(t)
	bySlot, slots := map[int64][]ptrace.Span{}, map[int64]slotOfSpans{}
	for _, span := range spans {
		at := int64(span.EndTimestamp()) / int64(pageSlot)
		bySlot[at] = append(bySlot[at], span)
		s := slots[at]
		s.seconds += float64(span.EndTimestamp()-span.StartTimestamp()) / 1e9
		s.tokens += float64(whole(t, span, "gen_ai.usage.output_tokens"))
		slots[at] = s
	}
	require.Len(t, slots, 6)
	var curves struct {
		InFlight              pageLoadCurve `json:"in_flight"`
		OutputTokensPerSecond pageLoadCurve `json:"output_tokens_per_second"`
		SlotSeconds           float64       `json:"slot_seconds"`
	}
	require.Eventually(t, func() bool { // a slot has a load once it is over
		c.askPage(t, "load", &curves)
		seen := 0
		for _, p := range curves.InFlight.Points {
			seen += p.Requests
		}
		return seen == len(spans)
	}, patience, 200*time.Millisecond)
	require.InDelta(t, pageSlot.Seconds(), curves.SlotSeconds, 0)

	for name, check := range map[string]struct {
		curve *pageLoadCurve
		load  func(slotOfSpans) float64
	}{
		"in flight":         {&curves.InFlight, func(s slotOfSpans) float64 { return s.seconds / pageSlot.Seconds() }},
		"tokens per second": {&curves.OutputTokensPerSecond, func(s slotOfSpans) float64 { return s.tokens / pageSlot.Seconds() }},
	} {
		var largest *float64
		missed, before := false, 0.0
		seen := 0
		for _, p := range check.curve.Points {
			require.GreaterOrEqual(t, p.From, before, "%s: ascending", name)
			before = p.To
			var loads []float64
			var of []ptrace.Span
			for at, s := range slots {
				if load := check.load(s); load > p.From && load <= p.To {
					loads, of = append(loads, load), append(of, bySlot[at]...)
				}
			}
			seen += len(loads)
			require.Equal(t, len(loads), p.Slots, "%s: slots with a load from %v to %v", name, p.From, p.To)
			require.Len(t, of, p.Requests, name)
			require.InEpsilon(t, mean(loads), p.Load, 1e-6, name)
			requireSummary(t, of, "tokenpulse.time_to_first_token", p.TimeToFirstToken)
			requireSummary(t, of, "tokenpulse.time_per_output_token", p.TimePerOutputToken)

			good, bad := 0, 0
			for _, span := range of {
				if valueOf(span, "tokenpulse.time_to_first_token") > 0.6 {
					bad++
				} else {
					good++
				}
			}
			require.Equal(t, "chat-ttft", p.SLOs[len(p.SLOs)-1].SLO)
			require.Equal(t, []int{good, bad}, []int{p.SLOs[len(p.SLOs)-1].Good, p.SLOs[len(p.SLOs)-1].Bad}, "%s at %v", name, p.Load)
			if missed = missed || float64(good) < 0.75*float64(good+bad); !missed {
				largest = &p.Load
			}
		}
		require.Equal(t, len(slots), seen, "%s: each slot is in one point", name)
		require.NotNil(t, largest, "%s: a load that met the SLO", name)
		require.True(t, missed, "%s: a load that missed the SLO", name)
		require.InDelta(t, *largest, *check.curve.SLOs[0].LargestLoad, 0, name)
	}
}

// valueOf returns an attribute of a span, NaN if it has none.
func valueOf(span ptrace.Span, name string) float64 {
	if v, ok := span.Attributes().Get(name); ok {
		return v.Double()
	}
	return math.NaN()
}

func whole(t *testing.T, span ptrace.Span, name string) int64 {
	t.Helper()
	v, ok := span.Attributes().Get(name)
	require.True(t, ok, name)
	return v.Int()
}

// requireSummary compares the numbers of the page with those of an attribute of spans.
func requireSummary(t *testing.T, spans []ptrace.Span, name string, got map[string]float64) {
	t.Helper()
	var values []float64
	for _, span := range spans {
		if v := valueOf(span, name); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	require.InDelta(t, len(values), got["count"], 0, name)
	require.InEpsilon(t, mean(values), got["mean"], 1e-9, name)
	require.InEpsilon(t, values[0], got["min"], 1e-9, name)
	require.InEpsilon(t, values[len(values)-1], got["max"], 1e-9, name)
	for percentile, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		require.InEpsilon(t, nearestRank(values, q), got[percentile], 0.0056, "%s %s", name, percentile)
	}
}

// Every number of the page's tiles is that of /metrics at the same time: of each model and
// of each outcome, and of all together.
func TestLivePage_EveryTileEqualsMetrics(t *testing.T) {
	c := startPageCollector(t)
	sendBurst(t, c, 300)
	families := scrape(t, c)
	const done = "tokenpulse_requests_total"
	require.InDelta(t, 300, sumOf(t, families, done, nil), 0)
	for _, model := range []string{"slow", "fast", ""} {
		labels, query := map[string]string{}, "now?range=5m"
		if model != "" {
			labels["gen_ai_request_model"] = model
			query += "&where=" + url.QueryEscape("gen_ai.request.model="+model)
		}
		with := func(more ...string) map[string]string {
			all := map[string]string{}
			maps.Copy(all, labels)
			for i := 0; i < len(more); i += 2 {
				all[more[i]] = more[i+1]
			}
			return all
		}
		var now livePageAnswer
		require.Eventually(t, func() bool {
			now = livePageAnswer{}
			require.NoError(t, json.Unmarshal(get(t, c.pageURL("api/v1/"+query), "application/json"), &now))
			requests := 0
			for _, n := range now.Requests {
				requests += n
			}
			return float64(requests) == sumOf(t, families, done, with())
		}, patience, 100*time.Millisecond)
		for outcome, n := range now.Requests {
			if n > 0 {
				require.InDelta(t, sumOf(t, families, done, with("outcome", outcome)), n, 0, outcome)
			}
		}
		require.Positive(t, now.Requests["success"])
		require.Positive(t, now.Requests["cancelled"])
		for kind, n := range now.Tokens {
			if n > 0 {
				require.InDelta(t, sumOf(t, families, "tokenpulse_tokens_total", with("type", kind)), n, 0, kind)
			}
		}
		require.InDelta(t, sumOf(t, families, "tokenpulse_stalls_total", with()), now.Stalls.Count, 0)
		require.InEpsilon(t, sumOf(t, families, "tokenpulse_stall_duration_seconds_total", with()), now.Stalls.Seconds, 1e-9)
		for _, u := range now.Unmeasured {
			require.InDelta(t, sumOf(t, families, "tokenpulse_requests_unmeasured_total", with("indicator", u.Indicator, "reason", u.Reason)), u.Requests, 0)
		}
		for _, s := range now.SLOs {
			for verdict, n := range map[string]int{"good": s.Good, "bad": s.Bad} {
				require.InDelta(t, sumOf(t, families, "tokenpulse_slo_requests_total", with("slo", s.SLO, "verdict", verdict)), n, 0, "%s %s", s.SLO, verdict)
			}
			if model != "" { // a gauge is of one series
				require.InDelta(t, sumOf(t, families, "tokenpulse_slo_error_budget_remaining", with("slo", s.SLO)), s.BudgetRemaining, 1e-9, s.SLO)
				for _, b := range s.BurnRates {
					window := time.Duration(b.WindowSeconds * float64(time.Second))
					name := map[time.Duration]string{5 * time.Minute: "5m", 30 * time.Minute: "30m", time.Hour: "1h", 6 * time.Hour: "6h", 72 * time.Hour: "3d"}[window]
					require.InDelta(t, sumOf(t, families, "tokenpulse_slo_burn_rate", with("slo", s.SLO, "window", name)), b.Rate, 1e-9, "%s over %s", s.SLO, name)
				}
			}
		}
		require.Len(t, now.SLOs, 3)
		requireHistograms(t, families, with(), now.Indicators)
	}
}

// requireHistograms compares counts and sums of the page with the histograms of /metrics
// that have the labels, of all outcomes together.
func requireHistograms(t *testing.T, families map[string]*dto.MetricFamily, labels map[string]string, got map[string]map[string]float64) {
	t.Helper()
	compared := 0
	for name, of := range got {
		family, phase := "tokenpulse_"+name+"_seconds", ""
		if _, ok := families[family]; !ok {
			family, phase = "tokenpulse_phase_duration_seconds", name
		}
		count, sum := uint64(0), 0.0
		for _, metric := range families[family].GetMetric() {
			if value, wanted := labels["gen_ai_request_model"]; wanted && label(metric, "gen_ai_request_model") != value || label(metric, "phase") != phase {
				continue
			}
			count += metric.GetHistogram().GetSampleCount()
			sum += metric.GetHistogram().GetSampleSum()
		}
		require.InDelta(t, count, of["count"], 0, name)
		require.InEpsilon(t, sum, of["mean"]*of["count"], 1e-9, name)
		compared++
	}
	require.Equal(t, 7, compared, "four indicators and three phases: %v", got)
}
