// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package page tests the live page in Chromium, and its API.
package page

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
)

// pageConfig extends examples/quickstart.yaml by what the page shows if it is configured.
const pageConfig = `
processors:
  token_latency:
    timeline: keep
    slos:
      - {name: chat-ttft, indicator: time_to_first_token, threshold: 100ms}
      - {name: chat-tpot, indicator: time_per_output_token, threshold: 12ms}
exporters:
  token_sli:
    page: {trace_link: "http://localhost:16686/trace/{trace_id}"}
    objectives:
      - {slo: chat-ttft, objective: 0.9}
      - {slo: chat-tpot, objective: 0.5}
      - {slo: all, objective: 0.5}
`

func startPageCollector(t *testing.T, more ...string) *collector.Collector {
	t.Helper()
	return collector.Start(t, collector.Example(t, "quickstart.yaml"), append([]string{"--config", collector.WriteFile(t, t.TempDir(), "page.yaml", pageConfig)}, more...)...)
}

// sendBurst sends finished requests to a fast and a slow model, at the same time.
func sendBurst(t *testing.T, c *collector.Collector, requests int, more ...string) {
	t.Helper()
	collector.Run(t, collector.Built(t, "tokenpulse"), append([]string{
		"generate", "--fast", "--requests", strconv.Itoa(requests), "--rate", "50", "--seed", "7", "--model", "slow=1", "--model", "fast=4",
		"--stall-ratio", "0.003", "--transport", "protobuf", "--endpoint", c.HTTP,
	}, more...)...)
}

var durationText = regexp.MustCompile(`^([0-9.,]+) (ms|s|min|h)$`)

// shownSeconds parses a duration as the page writes it.
func shownSeconds(t require.TestingT, text string) float64 {
	match := durationText.FindStringSubmatch(text)
	require.Len(t, match, 3, "%q is not a duration", text)
	value, err := strconv.ParseFloat(strings.ReplaceAll(match[1], ",", ""), 64)
	require.NoError(t, err)
	return value * map[string]float64{"ms": 1e-3, "s": 1, "min": 60, "h": 3600}[match[2]]
}

// shownLatency parses a value of an indicator. One of TPOT has its inverse as the second number.
func shownLatency(t require.TestingT, indicator, text string) float64 {
	if indicator != "time_per_output_token" {
		return shownSeconds(t, text)
	}
	first, second, _ := strings.Cut(text, " · ")
	seconds := shownSeconds(t, first)
	speed, ok := strings.CutSuffix(second, " tok/s")
	require.True(t, ok, "%q has no speed", text)
	perSecond, err := strconv.ParseFloat(strings.ReplaceAll(speed, ",", ""), 64)
	require.NoError(t, err)
	require.InEpsilon(t, 1/seconds, perSecond, 2*rounding, text)
	return seconds
}

// rounding is the relative error of three significant digits.
const rounding = 0.0051

// legend returns JavaScript that reads the numbers of a group beside a chart.
func legend(indicator, group string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('#trend-%s .legend tbody tr')].filter(row => row.querySelector('button').textContent === %q).flatMap(row => [...row.querySelectorAll('.number')].map(cell => cell.textContent))`, indicator, group)
}

// The page's numbers are those of /metrics, the charts are drawn, and the slower model's
// line is above the faster one's.
func TestLivePage_NumbersEqualMetricsAndChartsAreDrawn(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	for seed := range 3 { // a line needs more than one point
		sendBurst(t, c, 100, "--seed", strconv.Itoa(seed))
		time.Sleep(5 * time.Second)
	}
	p := openTab(t, c.PageURL("?outcome=success"))
	p.expect("willReadFrequently") // the test reads pixels, the page does not
	p.waitUntilLoaded()

	metrics := exposition.Scrape(t, c)
	for _, indicator := range []string{"time_to_first_token", "time_per_output_token", "inter_token_latency", "request_duration"} {
		for _, group := range []string{"slow", "fast"} {
			shown := evaluate[[]string](p, legend(indicator, group))
			require.Len(t, shown, 3)
			for i, percentile := range []string{"50", "95", "99"} {
				want := exposition.SumOf(t, metrics, "tokenpulse_"+indicator+"_percentile_seconds", map[string]string{"gen_ai_request_model": group, "outcome": "success", "percentile": percentile})
				require.InEpsilon(t, want, shownLatency(t, indicator, shown[i]), rounding, "%s of %s, p%s", indicator, group, percentile)
			}
		}
		y := evaluate[map[string]float64](p, `(() => {
			const canvas = document.querySelector('#trend-`+indicator+` canvas');
			const {data, width} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
			const rows = {};
			for (const row of document.querySelectorAll('#trend-`+indicator+` .legend tbody tr')) {
				const [r, g, b] = getComputedStyle(row.querySelector('.swatch')).backgroundColor.match(/\d+/g).map(Number);
				let sum = 0, n = 0;
				for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12) { sum += Math.floor(i / 4 / width); n++ }
				rows[row.querySelector('button').textContent] = n >= 10 ? sum / n : -1;
			}
			return rows;
		})()`)
		require.Positive(t, y["slow"], "%s: no line of the slow model", indicator)
		require.Greater(t, y["fast"], y["slow"], "%s: pixels are counted from the top", indicator)
	}

	good := exposition.SumOf(t, metrics, "tokenpulse_slo_requests_total", map[string]string{"slo": "chat-tpot", "verdict": "good"})
	bad := exposition.SumOf(t, metrics, "tokenpulse_slo_requests_total", map[string]string{"slo": "chat-tpot", "verdict": "bad"})
	p.waitUntil(fmt.Sprintf(`[...document.querySelectorAll('.slo')].find(card => card.textContent.startsWith('chat-tpot')).querySelector('dd').textContent === '%.1f%%'`, 100*good/(good+bad)))
	// Each part has pixels in the colour of its data: axes alone do not suffice. No canvas is
	// blank, but of the slowest requests, some have a prefill narrower than a pixel.
	for part, color := range map[string]string{"heatmap": "--heat-4", "load": "--series-1", "prompts": "--series-1", "slowest": "--phase-prefill", "compare": "of the legend"} {
		p.show(part)
		quantifier := "every"
		if part == "slowest" {
			quantifier = "some"
		}
		p.waitUntil(`(() => {
			const hex = getComputedStyle(document.documentElement).getPropertyValue('` + color + `').trim();
			const [r, g, b] = hex ? [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)) : getComputedStyle(document.querySelector('#` + part + ` .swatch')).backgroundColor.match(/\d+/g).map(Number);
			const has = (canvas, distance) => {
				const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
				for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < distance) return true;
				return false;
			};
			const canvases = [...document.querySelectorAll('#` + part + ` canvas')];
			return canvases.length > 0 && canvases.every(canvas => has(canvas, Infinity)) && canvases.` + quantifier + `(canvas => has(canvas, 12));
		})()`)
	}
	p.show("phases")
	p.waitUntil(`document.querySelectorAll('#phases .stack span').length >= 4`)
}

// The crosshair shows the numbers that the API has for that time, in all charts at once.
func TestLivePage_ArrowKeysMoveOneCrosshairThroughAllCharts(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendBurst(t, c, 200)
	p := openTab(t, c.PageURL("?range=1h"))
	p.waitUntilLoaded()
	type trends struct {
		Groups []struct {
			Value      string
			Indicators map[string]map[string][]*float64
		}
	}
	p.do(script(`document.querySelector('#trend-time_to_first_token .plot').focus()`))
	// The page may have loaded before the last requests counted. It loads again after 15 seconds.
	require.EventuallyWithT(t, func(try *assert.CollectT) {
		var want trends
		require.NoError(try, json.Unmarshal(collector.Get(t, c.PageURL("api/v1/trends?range=1h"), "application/json"), &want))
		p.press(keyEnd)
		for _, group := range want.Groups {
			for indicator, percentiles := range group.Indicators {
				shown := evaluate[[]string](p, legend(indicator, group.Value))
				require.Len(try, shown, 3, "%s of %s", indicator, group.Value)
				for i, percentile := range []string{"p50", "p95", "p99"} {
					values := percentiles[percentile]
					if last := values[len(values)-1]; last == nil {
						require.Equal(try, "–", shown[i])
					} else {
						require.InEpsilon(try, *last, shownLatency(try, indicator, shown[i]), rounding, "%s %s of %s", indicator, percentile, group.Value)
					}
				}
			}
		}
	}, 40*time.Second, 200*time.Millisecond)
	// captions returns the time at the crosshair in each of the four charts.
	captions := func() []string {
		return evaluate[[]string](p, `[...document.querySelectorAll('#trends .legend .caption')].map(caption => caption.textContent)`)
	}
	const wholeRange = "whole range" // without a crosshair
	same := func() bool {
		all := captions()
		return len(all) == 4 && all[0] != wholeRange && len(slices.Compact(all)) == 1
	}
	p.press(keyEnd)
	require.Eventually(t, same, collector.Patience, 50*time.Millisecond)

	// A further model needs a further line, so the page builds its charts again.
	sendBurst(t, c, 50, "--seed", "8", "--model", "other=1")
	p.waitUntil(`[...document.querySelectorAll('#trends .legend tbody')].every(group => [...group.querySelectorAll('button')].some(button => button.textContent === 'other'))`)
	require.Eventually(t, same, collector.Patience, 50*time.Millisecond, "the crosshair is gone")

	require.Eventually(t, func() bool { // a refresh may add a slot between the keys
		p.press(keyEnd)
		end := captions()
		p.press(keyLeft)
		before := captions()
		return same() && before[3] != wholeRange && before[3] != end[3]
	}, collector.Patience, 50*time.Millisecond)
}

// Filters are in the URL: a reload, a link and the back button keep them.
func TestLivePage_FiltersSurviveReloadAndBackRemovesThem(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendBurst(t, c, 200)
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	const onlySlow = `[...document.querySelectorAll('#trend-time_to_first_token .legend button')].map(button => button.textContent).join() === 'slow'`
	p.do(script(`{ const select = document.querySelector('[data-filter="gen_ai.request.model"] select'); select.value = 'slow'; select.dispatchEvent(new Event('change')) }`))
	p.waitUntil(onlySlow)
	require.Equal(t, []string{"gen_ai.request.model=slow"}, query(t, p)["where"])

	p.do(script(`document.querySelector('[data-value="1h"]').click()`))
	p.open(p.text("location.href"))
	p.waitUntil(onlySlow)
	require.Equal(t, "slow", p.text(`document.querySelector('[data-filter="gen_ai.request.model"] select').value`))
	require.Equal(t, []string{"1h"}, query(t, p)["range"])

	p.do(script(`document.querySelector('.filters .clear').click()`))
	p.waitUntil(`document.querySelectorAll('#trend-time_to_first_token .legend button').length === 2`)
	require.Empty(t, query(t, p)["where"])
	p.do(script(`history.back()`))
	p.waitUntil(onlySlow)
}

func query(t *testing.T, p *tab) url.Values {
	t.Helper()
	address, err := url.Parse(p.text("location.href"))
	require.NoError(t, err)
	return address.Query()
}

// The Collector is killed and starts again on the same port: the page says so, and then
// shows new numbers without a reload.
func TestLivePage_ShowsALostConnectionAndRecoversWithoutReload(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendBurst(t, c, 50)
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	p.do(script(`window.sameDocument = true`))
	p.expect("net::ERR_")

	c.Signal(syscall.SIGKILL)
	<-c.Exited
	p.waitUntil(`document.querySelector('[role=alert]').textContent.includes('Connection lost')`)
	p.waitUntil(`document.querySelector('.status').textContent.startsWith('Disconnected since')`)
	p.screenshot("disconnected")

	again := c.Again(t)
	p.waitUntil(`document.querySelector('.status').textContent === 'Live'`)
	sendBurst(t, again, 50, "--model", "after-restart=2")
	p.waitUntil(`[...document.querySelectorAll('#trend-time_to_first_token .legend button')].some(button => button.textContent === 'after-restart')`)
	require.Empty(t, p.text(`document.querySelector('[role=alert]').textContent`))
	require.True(t, p.is("window.sameDocument"))
}

// The link of an alert opens the page with the requests of the alert, at the time of the alert. It stands still, until
// the reader goes on.
func TestLivePage_StandsStillAtTheEndOfARange(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendBurst(t, c, 50, "--model", "paged=1")
	sendBurst(t, c, 50, "--model", "other=1")
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	time.Sleep(6 * time.Second) // the slot of the requests is over
	end := time.Now().Unix()

	p.open(c.PageURL(fmt.Sprintf("?range=90m&end=%d&where=gen_ai.request.model=paged", end)))
	var answered struct{ From, To float64 }
	require.NoError(t, json.Unmarshal(collector.Get(t, c.PageURL(fmt.Sprintf("api/v1/now?range=90m&end=%d", end)), "application/json"), &answered))
	require.LessOrEqual(t, answered.From, float64(end-90*60))
	require.GreaterOrEqual(t, answered.To, float64(end))
	p.waitUntil(fmt.Sprintf(`[%f, %f].map(at => new Date(at * 1000).toLocaleTimeString('en-GB')).every(time => document.querySelector('.status').textContent.includes(time))`, answered.From, answered.To))
	p.waitUntil(`[...document.querySelectorAll('#trend-time_to_first_token .legend button')].map(button => button.textContent).join() === 'paged'`)
	const requests = `performance.getEntriesByType('resource').filter(entry => entry.name.includes('/api/v1/') && !/meta([?]|$)/.test(entry.name)).length`
	p.waitUntil(`(window.before = ` + requests + `) > 0`)
	require.True(t, p.is(`performance.getEntriesByType('resource').filter(entry => /api.v1.(now|trends)/.test(entry.name)).every(entry => entry.name.includes('end='))`))
	time.Sleep(3 * time.Second)
	p.do(script(`window.before = ` + requests))
	sendBurst(t, c, 50, "--model", "paged=1")
	time.Sleep(16 * time.Second) // charts of an hour would load again
	require.True(t, p.is(requests+` === window.before`), "the page asks for nothing while it stands still")

	p.do(script(`[...document.querySelectorAll('header button')].find(button => button.textContent === 'Go live').click()`))
	p.waitUntil(`document.querySelector('.status').textContent === 'Live'`)
	require.True(t, p.is(`!location.search.includes('end=') && location.search.includes('paged')`))
}

// Label values come from the wire. As text they are shown, as HTML they would run.
func TestLivePage_MarkupInAModelNameIsText(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	const name = `<script>window.ran=1</script><img src=x onerror=window.ran=1>"'&`
	encoded, err := json.Marshal(name)
	require.NoError(t, err)
	now := time.Now().Unix()
	c.Post(t, "application/x-ndjson", strings.NewReader(fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%[1]d000000000","attributes":{"gen_ai.request.model":%[2]s}}
{"event":"chunk","stream_id":"s","time_unix_nano":"%[1]d100000000"}
{"event":"chunk","stream_id":"s","time_unix_nano":"%[1]d200000000"}
{"event":"end","stream_id":"s","time_unix_nano":"%[1]d300000000"}
`, now, encoded)))
	p := openTab(t, c.PageURL(""))
	p.waitUntil(fmt.Sprintf(`[...document.querySelectorAll('#trends .legend button')].some(button => button.textContent === %q)`, name))
	for _, part := range []string{"phases", "slowest", "compare"} {
		p.show(part)
		p.waitUntil(fmt.Sprintf(`document.querySelector('#%s').textContent.includes(%q)`, part, name))
	}
	p.do(script(`document.querySelector('[data-request]').click()`))
	p.waitUntil(`document.querySelector('#request h2')`)
	require.True(t, p.is(`window.ran === undefined && !document.querySelector('main script, main img')`))
}

// An address that the API refuses, such as an old link, says what to change.
func TestLivePage_ShowsTheRemedyOfAnError(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendBurst(t, c, 20)
	p := openTab(t, c.PageURL("?by=host.name"))
	p.expect("400")
	p.waitUntil(`document.querySelector('#trends .problem').textContent.includes('gen_ai.request.model')`)
	require.Contains(t, p.text(`document.querySelector('#trends .problem').textContent`), "host.name")
}

// The page of one request: from the list, by its address, and for a request that is gone.
func TestLivePage_SlowestRequestHasAPageWithItsChunks(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendBurst(t, c, 100)
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	p.show("slowest")
	p.waitUntil(`document.querySelectorAll('#slowest tbody tr').length === 12`)
	slowest := p.text(`document.querySelector('#slowest tbody tr').children[4].textContent`)
	p.do(script(`document.querySelector('#slowest [data-request]').click()`))
	p.waitUntil(`document.querySelector('#request .bigstrip canvas')`)
	require.Equal(t, slowest, p.text(`[...document.querySelectorAll('#request dt')].find(name => name.textContent === 'Duration').nextSibling.textContent`))
	require.Regexp(t, `^http://localhost:16686/trace/[0-9a-f]{32}$`, p.text(`[...document.querySelectorAll('#request a')].at(-1).href`))
	p.open(p.text("location.href"))
	p.waitUntil(`document.querySelector('#request .bigstrip canvas')`)
	p.do(script(`document.querySelector('#request .back').click()`))
	p.waitUntilLoaded()

	p.expect("404")
	p.open(c.PageURL("?request=gone"))
	p.waitUntil(`document.querySelector('#request .notice')`)
}

// 200 series: the page stays fluid while live updates arrive.
func TestLivePage_StaysFluidWith200Series(t *testing.T) {
	c := startPageCollector(t)
	models := make([]string, 0, 400)
	for i := range 200 {
		models = append(models, "--model", fmt.Sprintf("model-%03d=%.1f", i, 1+float64(i)/50))
	}
	collector.Run(t, collector.Built(t, "tokenpulse"), append([]string{ // of 30 seeds, one leaves a model without a request
		"generate", "--fast", "--requests", "2000", "--seed", "2", "--rate", "100", "--transport", "protobuf", "--endpoint", c.HTTP,
	}, models...)...)
	live := collector.StartProcess(t, collector.Built(t, "tokenpulse"), append([]string{"generate", "--rate", "10", "--endpoint", c.HTTP}, models...)...)
	defer live.Stop(t)
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	p.waitUntil(`document.querySelector('#trends .heading').textContent.includes('6 of 200')`)
	for _, part := range []string{"compare", "slowest", "load", "heatmap", "now"} {
		p.show(part)
	}
	requireCPU(t, 50*time.Millisecond, func() (*tab, time.Duration) {
		tasks := p.tasks(func() { time.Sleep(11 * time.Second) }) // two refreshes of the charts
		require.Greater(t, len(tasks), 100, "the page does its work meanwhile")
		return p, tasks[0].cpu
	})
}
