// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
)

// pageOfEngines shows the engine behind a token_tap, and those of a token_stream.
const pageOfEngines = `
receivers:
  token_stream: {liveness: {}}
  token_tap: {endpoint: %q, upstream: {endpoint: %q}, liveness: {endpoint: %q, bound: 1s, max_bound: 2s}}
processors: {token_latency: }
exporters: {token_sli: }
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream, token_tap], processors: [token_latency], exporters: [token_sli]}
`

// engineRows returns JavaScript that reads the rows of engines: the cells of each, joined.
const engineRows = `[...document.querySelectorAll('#engines tbody tr')].map(row => [...row.cells].map(cell => cell.textContent).join('|'))`

// An engine stops in the middle of an answer, and goes on. Without a click, the page says that it is stuck, and why.
func TestLivePage_SaysThatAnEngineIsStuckAndThatItWorksAgain(t *testing.T) {
	t.Parallel()
	var wedged atomic.Bool
	engine := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		llmservice.WriteChunks(w, 1)
		for wedged.Load() && r.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		llmservice.WriteChunks(w, 1)
		_, _ = io.WriteString(w, llmservice.ChatEnd)
	})
	tap, name := collector.FreeAddress(t), engine.Listener.Addr().String()
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "page.yaml", fmt.Sprintf(pageOfEngines, tap, engine.URL, collector.FreeAddress(t))))
	ask := func() error {
		response, err := http.Post("http://"+tap+llmservice.ChatPath, "application/json", strings.NewReader(llmservice.ChatAsked))
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		return err
	}
	require.NoError(t, ask())
	p := openTab(t, c.PageURL(""))
	const clock, age = `(\w{3} )?\d\d:\d\d:\d\d`, `[\d.]+ (ms|s) ago`
	row := func(state string, pattern string) {
		t.Helper()
		p.waitUntil(engineRows + `.some(row => row.startsWith('` + state + `|'))`)
		rows := evaluate[[]string](p, engineRows)
		require.Len(t, rows, 1)
		require.Regexp(t, `^`+state+`\|`+name+`\|`+pattern+`$`, rows[0])
	}
	row("idle", `no request is open\|`+clock+`\|0\|`+age+`\|[\d.]+ s`)
	require.Equal(t, "none", p.text(`document.querySelector('#engines .verdict').dataset.level`))

	wedged.Store(true)
	answered := make(chan error)
	go func() { answered <- ask() }()
	row("stuck", `no token for [\d.]+s, though open requests explain at most [\d.]+s\|`+clock+`\|1\|`+age+`\|[\d.]+ s`)
	require.Equal(t, "bad", p.text(`document.querySelector('#engines .verdict').dataset.level`))
	p.screenshot("engine-stuck")
	_, content := api(t, c, "openapi.yaml")
	d := parseDescription(t, content)
	for _, endpoint := range []string{"now", "engines"} {
		_, body := api(t, c, endpoint)
		require.Contains(t, string(body), `"state":"stuck"`)
		d.check(t, "/api/v1/"+endpoint, "200", "application/json", body)
	}

	wedged.Store(false)
	require.NoError(t, <-answered)
	row("idle", `no request is open\|`+clock+`\|0\|`+age+`\|[\d.]+ s`)

	p.open(c.PageURL(fmt.Sprint("?end=", time.Now().Unix()))) // of the past, nothing is known
	p.waitUntil(`/\d to .*\d$/.test(document.querySelector('.status').textContent)`)
	p.waitUntil(shownTile("Open streams") + ` === undefined && !document.querySelector('#engines').checkVisibility()`)
}

// Names of 80 characters wrap, and more than 20 engines are a number with a link to all.
func TestLivePage_ListsTheEnginesThatNeedAttentionFirst(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "page.yaml", fmt.Sprintf(pageOfEngines, collector.FreeAddress(t), "http://localhost:1", collector.FreeAddress(t))),
		"--set", "receivers.token_stream.liveness.bound=1s", "--set", "receivers.token_stream.liveness.max_bound=1s", "--set", "receivers.token_stream.idle_timeout=10m")
	long := strings.Repeat("long-name.", 8)
	for i := range 23 {
		sendReplica(t, c, "llama", fmt.Sprintf("gpu-%02d", i), 1, 50*time.Millisecond)
	}
	beginOn(t, c, "llama", long, "acme", 1, 1)
	p := openTab(t, c.PageURL(""))
	p.waitUntil(engineRows + `[0].startsWith('stuck|') && ` + engineRows + `.length === 20 && document.querySelector('#engines .title').textContent.endsWith(' · the 20 that need attention first; 5 more are in api/v1/engines')`) // one is of the tap
	rows := evaluate[[]string](p, engineRows)
	require.Contains(t, rows[0], "stuck|"+long+"|")
	require.Contains(t, rows[1], "unknown|localhost:1|")
	require.Contains(t, rows[2], "idle|gpu-00|")
	p.open(c.PageURL(""))
	p.waitUntil(engineRows + `[0]?.startsWith('stuck|') && document.querySelector('#trends .legend tbody tr')`)
	require.Less(t, evaluate[float64](p, `new Promise(done => {
		new PerformanceObserver(list => done(list.getEntries().reduce((sum, {value}) => sum + value, 0))).observe({type: 'layout-shift', buffered: true});
		setTimeout(() => done(0), 1000);
	})`),
		0.1, "the page has room for the rows before they arrive")
	for _, width := range []int64{320, 390, 1280} {
		for _, scheme := range []string{"dark", "light"} {
			p.look(width, 900, scheme)
			p.waitUntil(fmt.Sprintf(`document.documentElement.scrollWidth <= innerWidth && innerWidth === %d`, width))
			p.do(script(`document.querySelector('#engines').scrollIntoView(); undefined`))
			require.True(t, p.is(`document.querySelector('#engines bdi').getBoundingClientRect().width < innerWidth / 2`), "the name wraps")
			p.screenshot(fmt.Sprint("engines-", width, "-", scheme))
		}
	}
	require.Equal(t, c.PageURL("api/v1/engines"), p.text(`document.querySelector('#engines a').href`))
	var all struct{ Engines []any }
	c.AskPage(t, "engines", &all)
	require.Len(t, all.Engines, 25)
}
