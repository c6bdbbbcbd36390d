// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// reportSLOs judge the requests of reports.
const reportSLOs = `
slos: [{name: fast, indicator: time_to_first_token, threshold: 300ms}]
objectives: [{slo: fast, objective: 0.9}]
`

// writeReport writes a report of token events as HTML, and returns its address.
func writeReport(t *testing.T, events string, more ...string) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "report with spaces.html")
	collector.Run(t, collector.Built(t, "tokenpulse"), append([]string{
		"report", events, "--format", "html", "--output", path, "--slos", collector.WriteFile(t, folder, "slos.yaml", reportSLOs),
	}, more...)...)
	return "file://" + strings.ReplaceAll(path, " ", "%20")
}

// generated returns a file of token events of two models and two tenants.
func generated(t *testing.T, requests int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--requests", strconv.Itoa(requests), "--rate", "5", "--seed", "7",
		"--model", "slow=1", "--model", "fast=4", "--attribute", "tenant.id=a", "--attribute", "tenant.id=b", "--output", path)
	return path
}

// openReport opens a report, and fails the test if the page asks for anything but the file.
func openReport(t *testing.T, url string) *tab {
	t.Helper()
	p := openTab(t, url)
	p.waitUntil(`document.querySelector('.status').dataset.state === 'live' && document.querySelector('#content > *')`)
	t.Cleanup(func() {
		require.Zero(t, evaluate[float64](p, `performance.getEntriesByType('resource').length`), "the page asked for more than its file")
	})
	return p
}

// chooseFilter chooses a value of a select in the bar of filters.
func (p *tab) chooseFilter(name, value string) {
	p.t.Helper()
	p.do(script(fmt.Sprintf(`{ const select = document.querySelector('[data-filter="%s"] select'); select.value = %q; select.dispatchEvent(new Event('change')) }`, name, value)))
}

// The numbers of the file are those of the same report as JSON.
func TestReportPage_NumbersEqualTheJSON(t *testing.T) {
	t.Parallel()
	events := generated(t, 600)
	by := []string{"--by", "gen_ai.request.model", "--slos", collector.WriteFile(t, t.TempDir(), "slos.yaml", reportSLOs)}
	var want struct {
		Groups []struct {
			Labels   map[string]string
			Outcomes map[string]struct {
				Requests   int
				Indicators map[string]struct{ P50, P95, P99 float64 }
			}
			SLOs map[string]struct{ Good, Bad int }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(collector.Run(t, collector.Built(t, "tokenpulse"), append([]string{"report", events, "--format", "json"}, by...)...)), &want))
	p := openReport(t, writeReport(t, events, by[:2]...))
	p.waitUntilLoaded()
	require.Equal(t, "600 requests in 1 file.", p.text(`document.querySelector('#now .heading p').textContent`))
	good, bad := 0, 0
	for _, g := range want.Groups {
		good, bad = good+g.SLOs["fast"].Good, bad+g.SLOs["fast"].Bad
	}
	require.Equal(t, fmt.Sprintf("%.1f%%", 100*float64(good)/float64(good+bad)), p.text(`document.querySelector('[data-slo=fast] dd').textContent`))

	p.chooseFilter("outcome", "success")
	p.waitUntil(`location.search === '?outcome=success' && document.querySelector('#now .heading p').textContent !== '600 requests in 1 file.'`)
	requests := 0
	for _, g := range want.Groups {
		requests += g.Outcomes["success"].Requests
	}
	p.waitUntil(fmt.Sprintf(`document.querySelector('#now .heading p').textContent === '%d requests in 1 file.'`, requests))
	for _, g := range want.Groups {
		for _, indicator := range []string{"time_to_first_token", "time_per_output_token", "inter_token_latency", "request_duration"} {
			of := g.Outcomes["success"].Indicators[indicator]
			require.EventuallyWithT(t, func(try *assert.CollectT) { // until the charts are drawn, the numbers are those of all outcomes
				shown := evaluate[[]string](p, legend(indicator, g.Labels["gen_ai.request.model"]))
				require.Len(try, shown, 3)
				for i, expected := range []float64{of.P50, of.P95, of.P99} {
					require.InEpsilon(try, expected, shownLatency(try, indicator, shown[i]), rounding, "%s of %v", indicator, g.Labels)
				}
			}, collector.Patience, 100*time.Millisecond)
		}
	}
	for _, part := range []string{"heatmap", "load", "prompts", "slowest", "compare", "phases"} {
		p.show(part)
	}
	require.True(t, p.is(`[...document.querySelectorAll('.problem')].every(problem => !problem.firstChild)`))
}

// A file answers to one filter at a time, and offers no other. Reload and the back button keep it.
func TestReportPage_FiltersSplitsAndRequestsWorkWithoutAServer(t *testing.T) {
	t.Parallel()
	p := openReport(t, writeReport(t, generated(t, 300), "--by", "gen_ai.request.model", "--by", "tenant.id"))
	p.waitUntilLoaded()
	const names = `[...document.querySelectorAll('#trend-time_to_first_token .legend button')].map(button => button.textContent).sort().join()`
	require.Equal(t, "fast,slow", p.text(names))
	require.True(t, p.is(`document.querySelector('[aria-label=Range]').hidden && !document.querySelector('footer a[href="metrics"]')`), "what needs a Collector is not there")

	p.chooseFilter("by", "tenant.id")
	p.waitUntil(names + ` === 'a,b'`)
	p.do(script(`document.querySelector('#trend-time_to_first_token .legend button').click()`)) // shows only this tenant, by model
	p.waitUntil(names + ` === 'fast,slow' && location.search.includes('tenant.id')`)
	p.chooseFilter("gen_ai.request.model", "slow")
	p.waitUntil(names + ` === 'a,b' && location.search === '?where=gen_ai.request.model%3Dslow'`)
	p.open(p.text("location.href"))
	p.waitUntil(names + ` === 'a,b'`)
	require.Equal(t, "slow", p.text(`document.querySelector('[data-filter="gen_ai.request.model"] select').value`))
	p.do(script(`document.querySelector('nav a[href="#slowest"]').click()`))
	p.show("slowest")
	for rank, name := range map[string]string{"time_to_first_token": "TTFT", "time_per_output_token": "TPOT", "request_duration": "duration"} {
		p.do(script(fmt.Sprintf(`document.querySelector('#slowest [data-value=%s]').click()`, rank)))
		p.waitUntil(fmt.Sprintf(`document.querySelector('#slowest [aria-pressed=true]').textContent === '%s' && document.querySelectorAll('#slowest tbody tr').length === 12`, name))
	}
	p.do(script(`document.querySelector('#slowest [data-request]').click()`))
	p.waitUntil(`document.querySelector('#request .bigstrip canvas') && document.querySelector('#request .plot canvas')`)
	p.do(script(`document.querySelector('#request .back').click()`))
	p.waitUntil(names + ` === 'a,b'`)
	p.do(script(`document.querySelector('.filters .clear').click()`))
	p.waitUntil(names + ` === 'fast,slow'`)
	p.show("compare")
	p.waitUntil(`document.querySelector('#compare thead').textContent.includes('fast')`)
	p.do(script(`history.back()`))
	p.waitUntil(names + ` === 'a,b'`)

	p.open(strings.SplitN(p.text("location.href"), "?", 2)[0] + "?where=gen_ai.request.model=unknown")
	p.waitUntil(`document.querySelector('.notice').textContent.includes('The report does not have this selection')`)
	p.do(script(`document.querySelector('a.brand').click()`))
	p.waitUntil(names + ` === 'fast,slow'`)
}

// What a name would do as markup, it does not: as text, it is shown. The policy of the file forbids the network.
func TestReportPage_NamesAreTextAndTheNetworkIsForbidden(t *testing.T) {
	t.Parallel()
	hostile := `</script><script>window.ran=1</script><img src=x onerror=window.ran=1>"'&<!--<script>`
	long := strings.Repeat("long-name-", 8)
	require.Len(t, long, 80)
	var events strings.Builder
	for i, name := range []string{hostile, long} {
		encoded, err := json.Marshal(name)
		require.NoError(t, err)
		fmt.Fprintf(&events, `{"event":"start","stream_id":"s%[1]d","time_unix_nano":"1768208400000000000","attributes":{"gen_ai.request.model":%[2]s}}
{"event":"chunk","stream_id":"s%[1]d","time_unix_nano":"1768208400100000000"}
{"event":"chunk","stream_id":"s%[1]d","time_unix_nano":"1768208400200000000"}
{"event":"end","stream_id":"s%[1]d","time_unix_nano":"1768208400300000000"}
`, i, encoded)
	}
	p := openReport(t, writeReport(t, collector.WriteFile(t, t.TempDir(), "events.ndjson", events.String())))
	p.waitUntil(fmt.Sprintf(`[...document.querySelectorAll('#trends .legend button')].some(button => button.textContent === %q)`, hostile))
	for _, part := range []string{"phases", "slowest", "compare"} {
		p.show(part)
		p.waitUntil(fmt.Sprintf(`[%q, %q].every(name => document.querySelector('#%s').textContent.includes(name))`, hostile, long, part))
	}
	require.True(t, p.is(`window.ran === undefined && !document.querySelector('main script, main img')`))
	require.Contains(t, p.text(`document.querySelector('.status').textContent`), "12 Jan 2026", "the range has its date")
	p.look(390, 900, "light")
	require.LessOrEqual(t, evaluate[float64](p, `document.documentElement.scrollWidth`), 390.)

	p.expect("Content Security Policy")
	p.expect("Failed to fetch")
	p.expect("frame")
	require.Equal(t, "TypeError", evaluate[string](p, `fetch('http://127.0.0.1:9/').catch(error => error.name)`))
	p.do(script(`window.blocked = []; addEventListener('securitypolicyviolation', event => blocked.push(event.effectiveDirective));
		for (const [tag, name, value] of [['img', 'src', 'http://127.0.0.1:9/x'], ['script', 'src', 'http://127.0.0.1:9/x'], ['iframe', 'src', 'http://127.0.0.1:9/x']]) {
			const element = document.createElement(tag); element[name] = value; document.body.append(element);
		} undefined`))
	p.waitUntil(`['img-src', 'script-src-elem', 'frame-src'].every(name => blocked.includes(name))`)
	p.do(script(`document.querySelectorAll('body > :is(img, iframe)').forEach(element => element.remove()); performance.clearResourceTimings()`))
}

// axe-core finds no serious violation, in both themes, with numbers and without.
func TestReportPage_AxeFindsNoSeriousViolation(t *testing.T) {
	t.Parallel()
	p := openReport(t, writeReport(t, generated(t, 200)))
	p.waitUntilLoaded()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			p.look(width, 6000, scheme)
			p.waitUntil(`document.querySelector('#slowest tbody tr') && document.querySelector('#compare tbody tr') && document.documentElement.dataset.theme === '` + scheme + `'`)
			p.requireNoViolation(scheme)
			require.LessOrEqual(t, evaluate[float64](p, `document.documentElement.scrollWidth`), float64(width), "the page scrolls sideways")
		}
	}
	p.screenshot("report")
	p.open(writeReport(t, collector.WriteFile(t, t.TempDir(), "empty.jsonl", `{"resourceSpans":[]}`+"\n")))
	p.waitUntil(`document.querySelector('main').textContent.includes('No requests with a latency')`)
	p.requireNoViolation("empty report")
	p.screenshot("report-empty")
}

// The page says what its numbers leave out, and whether they are a part.
func TestReportPage_SaysWhatTheNumbersLeaveOut(t *testing.T) {
	t.Parallel()
	events, err := os.ReadFile(generated(t, 20))
	require.NoError(t, err)
	folder := t.TempDir()
	collector.WriteFile(t, folder, "a.ndjson", string(events))
	collector.WriteFile(t, folder, "b.ndjson", string(events))
	address := writeReport(t, folder)
	p := openReport(t, address)
	p.waitUntil(`document.querySelector('#notes').textContent.includes('20 requests read before, which count once.')`)
	require.Equal(t, "20 requests in 2 files.", p.text(`document.querySelector('#now .heading p').textContent`))

	path, err := url.PathUnescape(strings.TrimPrefix(address, "file://"))
	require.NoError(t, err)
	report, err := os.ReadFile(path) //nolint:gosec // the test wrote it
	require.NoError(t, err)
	part := strings.Replace(string(report), `"partial":false`, `"partial":true`, 1) // as after Ctrl-C
	require.NotEqual(t, string(report), part)
	p.open("file://" + collector.WriteFile(t, folder, "part.html", part))
	p.waitUntil(`document.querySelector('#notes').textContent.includes('Part of the files')`)
}
