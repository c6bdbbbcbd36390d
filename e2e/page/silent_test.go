// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

const silentConfig = `
receivers:
  token_stream: {idle_timeout: 10m}
exporters:
  token_sli:
    dimensions: [gen_ai.request.model, service.instance.id, tenant.id]
`

// beginOn opens streams on a replica and sends tokens of theirs.
func beginOn(t *testing.T, c *collector.Collector, model, replica, tenant string, streams, tokens int) {
	t.Helper()
	var body strings.Builder
	for i := range streams {
		event := tokenevents.EventsOf(&body, fmt.Sprint(model, replica, tenant, i), time.Now().Add(-30*time.Second))
		event("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":%q,"service.instance.id":%q,"tenant.id":%q}`, model, replica, tenant))
		for token := range tokens {
			event("chunk", time.Duration(token+1)*100*time.Millisecond, `,"tokens":3`)
		}
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
}

// answerOn sends a token of each of the streams that beginOn opened on a replica, twice a second, until the function that
// it returns is called.
func answerOn(t *testing.T, c *collector.Collector, model, replica, tenant string, streams int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	stop = func() { cancel(); sending.Wait() }
	t.Cleanup(stop)
	sending.Go(func() {
		for ctx.Err() == nil {
			var body strings.Builder
			for i := range streams {
				tokenevents.EventsOf(&body, fmt.Sprint(model, replica, tenant, i), time.Now())("chunk", 0, "")
			}
			answer, err := http.Post("http://"+c.HTTP+"/v1/tokens", "application/x-ndjson", strings.NewReader(body.String()))
			if err != nil {
				t.Error(err)
				return
			}
			_ = answer.Body.Close()
			time.Sleep(500 * time.Millisecond)
		}
	})
	return stop
}

// One replica of twenty hangs, before the first token and after some: all requests that ended are good. The page names the
// replica, its tenants and how far its streams came.
func TestLivePage_ListsTheStreamsThatAreSilentForLongest(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "page.yaml", silentConfig))
	for i := range 19 {
		sendReplica(t, c, "llama", fmt.Sprint("gpu-", i), 5, 50*time.Millisecond)
	}
	beginOn(t, c, "llama", "gpu-dead", "acme", 1, 4)
	time.Sleep(time.Second)
	beginOn(t, c, "llama", "gpu-dead", "umbrella", 12, 0)
	p := openTab(t, c.PageURL(""))
	p.waitUntil(shownTile("Open streams") + ` === '13'`)
	beginOn(t, c, "gemma", "gpu-new", "acme", 2, 1)
	stop := answerOn(t, c, "gemma", "gpu-new", "acme", 2)
	const rows = `[...document.querySelectorAll('#silent tbody tr')].map(row => [...row.cells].map(cell => cell.textContent).join('|'))`
	// All 13 of the replica are silent, the two others are not.
	p.waitUntil(`document.querySelector('#silent').checkVisibility() && ` + rows + `.length === 10 && document.querySelector('#silent .title').textContent.includes('the 10 of 13 ')`)
	listed := evaluate[[]string](p, rows)
	require.Regexp(t, `^\d\d\.\d s\|\d\d\.\d s\|12\|after tokens\|llama\|gpu-dead\|tenant.id acme\|server$`, listed[0])
	for _, row := range listed[1:] {
		require.Regexp(t, `^\d\d\.\d s\|\d\d\.\d s\|0\|no token yet\|llama\|gpu-dead\|tenant.id umbrella\|server$`, row)
	}
	p.waitUntil(tileOf("Open streams") + `.dataset.level === 'warn'`)
	p.waitUntil(tileOf("Open streams") + `.textContent.includes('1 without a token for over 15 s · 12 waiting for the first token for over 15 s')`)
	p.screenshot("silent")
	for _, width := range []int64{390, 1280} {
		p.look(width, 900, "dark")
		p.waitUntil(`document.documentElement.scrollWidth <= innerWidth`)
		p.screenshot(fmt.Sprint("silent-", width))
	}

	// Filters apply to the tile and the list.
	stop()
	p.do(script(`[...document.querySelectorAll('#silent .only')].find(button => button.textContent === 'acme').click()`))
	require.Equal(t, []string{"tenant.id=acme"}, query(t, p)["where"])
	p.waitUntil(shownTile("Open streams") + ` === '3' && document.querySelectorAll('#silent tbody tr').length === 3`) // now, those of gemma are silent, too
	p.open(c.PageURL("?where=gen_ai.request.model=gemma"))
	p.waitUntil(shownTile("Open streams") + ` === '2'`)
	p.open(c.PageURL("?where=service.instance.id=gpu-3"))
	p.waitUntil(shownTile("Open streams") + ` === '0' && !document.querySelector('#silent').checkVisibility() && ` + tileOf("Open streams") + `.dataset.level === 'none'`)
	p.open(c.PageURL("?vantage=engine"))
	p.waitUntil(shownTile("Open streams") + ` === '0'`)
	p.open(c.PageURL(fmt.Sprint("?end=", time.Now().Unix()))) // of the past, nothing is known
	p.waitUntil(`/\d to .*\d$/.test(document.querySelector('.status').textContent)`)
	p.waitUntil(shownTile("Open streams") + ` === undefined && !document.querySelector('#silent').checkVisibility()`)
}
