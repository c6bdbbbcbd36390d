// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// replicasConfig extends pageConfig by the dimension that names the replica.
const replicasConfig = pageConfig + `
    dimensions: [gen_ai.request.model, service.instance.id]
`

func startReplicasPage(t *testing.T) *collector.Collector {
	t.Helper()
	return collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "page.yaml", replicasConfig))
}

// sendReplica sends requests of four tokens, 10 ms apart, to a replica.
func sendReplica(t *testing.T, c *collector.Collector, model, replica string, requests int, first time.Duration) {
	t.Helper()
	sendReplicaAt(t, c, model, replica, requests, first, time.Now().Add(-30*time.Second))
}

func sendReplicaAt(t *testing.T, c *collector.Collector, model, replica string, requests int, first time.Duration, begin time.Time) {
	t.Helper()
	attributes, err := json.Marshal(map[string]string{"gen_ai.request.model": model, "service.instance.id": replica})
	require.NoError(t, err)
	var body strings.Builder
	for i := range requests {
		event := tokenevents.EventsOf(&body, fmt.Sprint(model, replica, first, i), begin)
		event("start", 0, `,"attributes":`+string(attributes))
		for token := range 4 {
			event("chunk", first+time.Duration(token)*10*time.Millisecond, "")
		}
		event("end", first+40*time.Millisecond, "")
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
}

// sendReplicas sends to eight fast replicas of a model, and to a slow one with the least traffic.
func sendReplicas(t *testing.T, c *collector.Collector) {
	t.Helper()
	for i := range 8 {
		sendReplica(t, c, "llama", fmt.Sprint("gpu-", i), 80+i, 50*time.Millisecond)
	}
	sendReplica(t, c, "llama", "gpu-slow", 20, 4*time.Second)
}

// inView is true if the element that a JavaScript expression returns is in the window, and not cut by its edge.
func inView(element string) string {
	return `(() => { const {top, bottom, left, right, width} = (` + element + `).getBoundingClientRect();
		return width > 0 && top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth })()`
}

// An operator opens the page: without a click, the first screen names the slow replica, and every list has it
// first or as one of the shown ones.
func TestLivePage_NamesTheSlowReplicaAmongNineOnTheFirstScreen(t *testing.T) {
	t.Parallel()
	c := startReplicasPage(t)
	sendReplicas(t, c)
	p := openTab(t, c.PageURL(""))
	for _, screen := range [][2]int64{{1280, 900}, {390, 844}} {
		p.look(screen[0], screen[1], "light")
		p.do(script(`scrollTo(0, 0)`))
		const line = `document.querySelector('#headline-time_to_first_token .worst')`
		p.waitUntil(line + `.textContent === 'gpu-slow · instance: 100% of the slow requests, 2.91% of all'`)
		p.waitUntil(inView(line))
		p.waitUntil(`document.querySelector('#headline-time_to_first_token').dataset.level === 'good'`) // 20 of 688 are bad
		p.waitUntil(inView(`document.querySelector('nav a[href="#compare"]')`))
		p.waitUntil(`document.querySelector('[data-slo="chat-ttft"] .worst').textContent === 'gpu-slow · instance: 100% of the bad requests, 2.91% of all'`)
		p.screenshot(fmt.Sprint("replicas-", screen[0]))
	}
	p.look(1280, 900, "light")
	p.waitUntilLoaded()
	require.Equal(t, []string{"gpu-slow", "gpu-7", "gpu-6", "gpu-5", "gpu-4", "gpu-3", "all others"},
		evaluate[[]string](p, `[...document.querySelectorAll('#trend-time_to_first_token tbody bdi')].map(name => name.textContent)`))
	p.show("phases")
	p.waitUntil(`document.querySelector('#phases .row bdi').textContent === 'gpu-slow' && document.querySelectorAll('#phases .row').length === 9`)
	p.show("slowest")
	p.waitUntil(`document.querySelector('#slowest thead').textContent.includes('instance') && document.querySelector('#slowest tbody tr').textContent.includes('gpu-slow')`)

	p.do(script(`scrollTo(0, 0); document.querySelector('#trends [data-value="requests"]').click()`))
	p.waitUntil(`document.querySelector('#trend-time_to_first_token tbody bdi').textContent === 'gpu-7'`)
	p.do(script(`document.querySelector('[data-slo="chat-ttft"] .only').click()`))
	p.waitUntil(`document.querySelector('#headline-time_to_first_token .value').textContent.startsWith('4.0')`)
	require.Equal(t, []string{"service.instance.id=gpu-slow"}, query(t, p)["where"])
	p.waitUntil(`document.querySelector('#headline-time_to_first_token').dataset.level === 'bad'`)
}

// The link of an alert selects a model: the charts are split by its replicas, of which the slow one is first.
func TestLivePage_SplitsTheModelOfAnAlertByItsReplicas(t *testing.T) {
	t.Parallel()
	c := startReplicasPage(t)
	sendReplicas(t, c)
	sendReplica(t, c, "other", "gpu-other", 5, 50*time.Millisecond)
	const names = `[...document.querySelectorAll('#trend-time_to_first_token tbody bdi')].map(name => name.textContent).join()`
	const replicas = names + ` === 'gpu-slow,gpu-7,gpu-6,gpu-5,gpu-4,gpu-3,all others'`
	p := openTab(t, c.PageURL(""))
	p.waitUntil(names + ` === 'llama,other'`)
	p.do(script(`{ const select = document.querySelector('[data-filter="gen_ai.request.model"] select'); select.value = 'llama'; select.dispatchEvent(new Event('change')) }`))
	p.waitUntil(replicas)
	p.open(c.PageURL("?range=1h&where=gen_ai.request.model=llama&vantage=server"))
	p.waitUntil(replicas)
	require.Equal(t, "instance", p.text(`document.querySelector('[data-filter="by"] select').selectedOptions[0].textContent`))

	// A filter on what is no dimension leaves the page usable.
	p.expect("400")
	p.open(c.PageURL("?where=no.dimension=x"))
	p.waitUntil(`document.querySelector('.filters .clear').checkVisibility()`)
}

// doubts returns JavaScript that is true if the panel of doubts, which is on the first screen, contains all of the texts.
func doubts(texts ...string) string {
	all, _ := json.Marshal(texts) // texts always encode
	return `(() => { const panel = document.querySelector('#doubts'); return ` + inView(`panel`) + ` && ` + string(all) + `.every(text => panel.textContent.includes(text)) })()`
}

const withoutProcessor = `
receivers: {token_stream: }
exporters: {token_sli: }
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], exporters: [token_sli]}
`

// Without the processor, nothing is measured. The page says so, and what to do, instead of waiting for traffic.
func TestLivePage_SaysThatTheProcessorIsMissing(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", withoutProcessor))
	sendReplica(t, c, "llama", "gpu-0", 50, 50*time.Millisecond)
	p := openTab(t, c.PageURL(""))
	p.waitUntil(doubts("Spans of model calls arrive without latency", "Add a token_latency processor"))
	// The receiver wrote outcomes, so there are requests.
	p.waitUntil(`document.querySelector('.tile:last-child').textContent.startsWith('Unmeasured100%') && document.querySelector('.tile:last-child').textContent.includes('no token_latency processor')`)
	p.waitUntil(`[...document.querySelectorAll('.headline .value')].every(value => value.textContent === '–')`)
	require.False(t, p.is(`document.body.textContent.includes('every request has')`))
	p.screenshot("doubts-processor")
}

const doubtful = `
receivers:
  token_stream:
  token_tap:
    endpoint: ${env:TAP}
    routes:
      - {prefix: /one, upstream: {endpoint: "http://127.0.0.1:1"}}
      - {prefix: /two, upstream: {endpoint: "http://127.0.0.1:2"}}
processors:
  token_latency: {slos: [{name: chat-ttft, indicator: time_to_first_token, threshold: 1s}]}
exporters:
  token_sli:
    dimensions: [gen_ai.request.model, service.instanceid]
    max_series: 3
    objectives: [{slo: chat-tftt, objective: 0.9}]
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream, token_tap], processors: [token_latency], exporters: [token_sli]}
`

// Each mistake of a pipeline that runs is named on the page and in the log, with its remedy.
func TestLivePage_NamesTheDoubtsOfItsCollector(t *testing.T) {
	t.Parallel()
	tap := collector.FreeAddress(t)
	collector.Setenv(t, "TAP", tap)
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", doubtful))
	for i := range 5 {
		sendReplica(t, c, fmt.Sprint("model-", i), "gpu-0", 30, 50*time.Millisecond)
	}
	for _, path := range []string{"/one", "/two", "/one", "/two"} {
		response, err := http.Post("http://"+tap+path+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true}`))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusBadGateway, response.StatusCode)
	}
	p := openTab(t, c.PageURL(""))
	p.waitUntil(doubts("objectives: chat-tftt", "dimension: service.instanceid", "otel.metric.overflow", "127.0.0.1:1", "127.0.0.1:2"))
	p.waitUntil(`document.querySelectorAll('#doubts li').length === 5`)
	p.screenshot("doubts")
	p.expect("net::ERR_")
	c.Stop(t)
	for _, text := range []string{`"objectives": ["chat-tftt"]`, `"dimension": "service.instanceid"`, "otel.metric.overflow", `"upstream": "127.0.0.1:1"`, `"upstream": "127.0.0.1:2"`} {
		require.Equal(t, 1, strings.Count(c.Output(t), text), text)
	}
}

// Two names that are long, and one that is written from right to left, fit into every part, on a phone, too.
func TestLivePage_HoldsLongAndRightToLeftNames(t *testing.T) {
	t.Parallel()
	c := startReplicasPage(t)
	models := []string{"neuralmagic/Meta-Llama-3.1-405B-Instruct-quantized.w8a8", "neuralmagic/Meta-Llama-3.1-405B-Instruct-quantized.w4a16-" + strings.Repeat("x", 30), "نموذج-كبير (8B)"}
	for i, model := range models {
		sendReplica(t, c, model, fmt.Sprint("replica-", i), 20, time.Duration(i+1)*50*time.Millisecond)
	}
	p := openTab(t, c.PageURL("?"+url.Values{"where": {"gen_ai.request.model=" + models[0]}, "a": {models[0]}, "b": {models[1]}, "compare": {"gen_ai.request.model"}}.Encode()))
	p.waitUntilLoaded()
	for _, width := range []int64{1280, 390} {
		p.look(width, 900, "light")
		p.show("compare") // both sides, although the filter selects one
		p.waitUntil(`document.querySelector('#compare .caption').textContent.includes('filter on model does not apply')`)
		p.waitUntil(fmt.Sprintf(`document.querySelectorAll('#compare .card').length === 4 && [...document.querySelectorAll('#compare .names bdi')].every((name, i) => name.textContent === %s[i %% 2])`, jsonOf(t, models[:2])))
		p.waitUntil(`[...document.querySelectorAll('#compare td')].filter(cell => cell.textContent === '20').length === 6`) // of three indicators
		p.waitUntil(`document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll('#compare .card')].every(card => card.scrollWidth <= card.clientWidth + 1)`)
		p.screenshot(fmt.Sprint("names-", width))
	}
	p.open(c.PageURL("?" + url.Values{"outcome": {"error"}, "a": {models[0]}, "b": {models[2]}, "compare": {"gen_ai.request.model"}}.Encode()))
	p.waitUntil(`document.querySelector('#compare .names')`)
	p.do(script(`document.getElementById('compare').scrollIntoView(); undefined`))
	p.waitUntil(`document.querySelector('#compare .notice').textContent.includes('with the filters on outcome')`)
	p.look(1280, 900, "light")
	p.open(c.PageURL(""))
	p.waitUntilLoaded()
	p.waitUntil(`getComputedStyle([...document.querySelectorAll('#trends bdi')].find(name => name.textContent.startsWith('ن'))).unicodeBidi === 'isolate'`)
	p.show("slowest")
	p.waitUntil(`document.querySelector('#slowest tbody small').textContent.startsWith('replica-2')`)
	p.do(script(`document.querySelector('#slowest [data-request]').click()`))
	p.waitUntil(`document.querySelector('#request h2').textContent.includes('\u2068نموذج-كبير (8B)\u2069')`)
	p.waitUntil(`[...document.querySelectorAll('#request dt')].find(name => name.textContent === 'replica').nextSibling.textContent === 'replica-2'`)
}

// Whoever compares two models chooses an SLO, begins the pair, and learns what the verdict lacks. Numbers of closed windows need two
// minutes, so TestCompare_ of the exporter, whose clock can run ahead, checks them.
func TestLivePage_AsksForAVerdict(t *testing.T) {
	t.Parallel()
	c := startReplicasPage(t)
	for _, model := range []string{"old", "new"} {
		sendReplica(t, c, model, "replica", 20, 50*time.Millisecond)
	}
	p := openTab(t, c.PageURL("?"+url.Values{"a": {"old"}, "b": {"new"}, "compare": {"gen_ai.request.model"}}.Encode()))
	p.waitUntilLoaded()
	p.show("compare")
	p.waitUntil(`document.querySelector('#compare .comparison .caption').textContent.includes('Choose an SLO')`)
	p.do(script(`(() => { const control = document.querySelector('#compare .comparison select'); control.selectedIndex = 1; control.dispatchEvent(new Event('change')) })()`))
	p.waitUntil(`document.querySelector('#compare .comparison .notice').textContent.includes('does not compare them yet')`)
	p.do(script(`document.querySelector('#compare .comparison button').click()`))
	p.waitUntil(`document.querySelector('#compare .comparison .notice').textContent.includes('undecided: too few bad requests so far')`)
	p.waitUntil(`[...document.querySelectorAll('#compare .comparison tbody bdi')].map(name => name.textContent).join().includes('new')`)
	p.waitUntil(`new URLSearchParams(location.search).get('slo') === document.querySelector('#compare .comparison select').value`)
	for _, width := range []int64{1280, 390} {
		p.look(width, 900, "light")
		p.show("compare")
		p.waitUntil(`document.documentElement.scrollWidth <= innerWidth`)
		p.screenshot(fmt.Sprint("verdict-", width))
	}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	require.NoError(t, err)
	return string(encoded)
}

// lineHeights is JavaScript that returns how high each group's line is in a chart: 0 at its bottom, 1 at its top.
const lineHeights = `(() => {
	const canvas = document.querySelector('#trend-time_to_first_token canvas');
	const {data, width, height} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
	const heights = {};
	for (const row of document.querySelectorAll('#trend-time_to_first_token .legend tbody tr')) {
		const [r, g, b] = getComputedStyle(row.querySelector('.swatch')).backgroundColor.match(/\d+/g).map(Number);
		let sum = 0, n = 0;
		for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12) { sum += Math.floor(i / 4 / width); n++ }
		heights[row.querySelector('bdi').textContent] = n > 0 ? 1 - sum / n / height : -1;
	}
	return heights;
})()`

// One request of 13 s must not press the lines of all others onto the axis.
func TestLivePage_AnOutlierDoesNotFlattenTheOtherLines(t *testing.T) {
	t.Parallel()
	c := startReplicasPage(t)
	sendReplica(t, c, "fast", "", 20, 50*time.Millisecond)
	sendReplica(t, c, "usual", "", 20, 200*time.Millisecond)
	sendReplica(t, c, "stuck", "", 1, 13*time.Second)
	p := openTab(t, c.PageURL(""))
	p.expect("willReadFrequently") // the test reads pixels, the page does not
	p.waitUntilLoaded()
	apart := func() float64 {
		heights := evaluate[map[string]float64](p, lineHeights)
		require.Greater(t, heights["stuck"], heights["usual"])
		require.GreaterOrEqual(t, heights["usual"], heights["fast"])
		return heights["usual"] - heights["fast"]
	}
	p.waitUntil(`Object.values(` + lineHeights + `).every(height => height > 0)`)
	require.Greater(t, apart(), 0.15, "a factor of 4 shows beside a factor of 65")
	p.screenshot("outlier")
	p.do(script(`document.querySelector('#trends [data-value="linear"]').click()`))
	require.Eventually(t, func() bool { return apart() < 0.05 }, collector.Patience, 50*time.Millisecond)
}

// A colour belongs to a name: it survives a reload, another order and a name that comes.
func TestLivePage_ColoursBelongToNames(t *testing.T) {
	t.Parallel()
	c := startReplicasPage(t)
	for i, model := range []string{"a", "b", "c", "d"} {
		sendReplica(t, c, model, "", 10+i, time.Duration(100-10*i)*time.Millisecond)
	}
	p := openTab(t, c.PageURL(""))
	colours := func(groups int) map[string]string {
		p.waitUntilLoaded()
		p.waitUntil(fmt.Sprintf(`document.querySelectorAll('#trend-time_to_first_token bdi').length === %d`, groups))
		return evaluate[map[string]string](p, `Object.fromEntries([...document.querySelectorAll('#trend-time_to_first_token tbody tr')].map(row => [row.querySelector('bdi').textContent, row.querySelector('.swatch').style.background]))`)
	}
	want := colours(4)
	unique := map[string]bool{}
	for _, colour := range want {
		unique[colour] = true
	}
	require.Len(t, unique, 4)
	p.open(c.PageURL(""))
	require.Equal(t, want, colours(4), "after a reload")
	p.open(c.PageURL("?rank=requests"))
	require.Equal(t, want, colours(4), "in another order")
	sendReplica(t, c, "0", "", 50, 3*time.Second)
	p.open(c.PageURL(""))
	with := colours(5)
	delete(with, "0")
	require.Equal(t, want, with, "after a name that is first by name and by rank")
	other := openTab(t, c.PageURL("?where=gen_ai.request.model=c&where=gen_ai.request.model=b"))
	other.waitUntilLoaded()
	require.Equal(t, want["b"], evaluate[string](other, `[...document.querySelectorAll('#trend-time_to_first_token tbody tr')].find(row => row.querySelector('bdi').textContent === 'b').querySelector('.swatch').style.background`), "in another browser")
}
