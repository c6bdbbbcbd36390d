// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// A user without a mouse: skip link, range, a filter, a chart, a request and back.
func TestLivePage_WorksWithTheKeyboardOnly(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendBurst(t, c, 200)
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	const focused = `document.activeElement`

	p.press(keyTab)
	require.True(t, p.is(focused+`.className === 'skip'`), "the first stop is the link to the numbers")
	p.press(keyEnter)
	require.True(t, p.is(focused+`.id === 'content'`))

	p.open(c.PageURL(""))
	p.waitUntilLoaded()
	p.tabUntil(focused + `.dataset.value === '1h'`)
	require.True(t, p.is(`getComputedStyle(document.activeElement).outlineStyle !== 'none'`), "focus is visible")
	p.press(keyEnter)
	p.waitUntil(`location.search.includes('range=1h')`)

	p.tabUntil(focused + `.closest('[data-filter="gen_ai.request.model"]')`)
	p.press(keyDown)
	p.waitUntil(`location.search.includes('where=gen_ai.request.model')`)

	p.tabUntil(focused + `.closest('#trend-time_to_first_token .plot')`)
	p.press(keyEnd)
	p.waitUntil(`document.querySelector('#trend-time_to_first_token .legend .caption').textContent !== 'whole range'`)

	p.tabUntil(focused + `.id !== 'content' && document.querySelector('#slowest').contains(document.activeElement)`)
	p.waitUntil(`document.querySelector('#slowest [data-request]')`)
	p.tabUntil(focused + `.dataset.request`)
	p.press(keyEnter)
	p.waitUntil(`document.querySelector('#request .bigstrip') && document.activeElement.id === 'request-title'`)
	p.do(script(`scrollTo(0, 0)`))
	p.open(p.text("location.href"))
	p.waitUntil(`document.querySelector('#request .back')`)
	p.tabUntil(focused + `.classList.contains('back')`)
	p.press(keyEnter)
	p.waitUntilLoaded()
}

// axe-core finds no serious violation, in both themes, on each kind of page and at each width.
func TestLivePage_AxeFindsNoSeriousViolation(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t, "--set", "receivers.token_stream.liveness.bound=1s", "--set", "receivers.token_stream.liveness.max_bound=1s")
	p := openTab(t, c.PageURL(""))
	p.waitUntil(`document.querySelector('#empty')`)
	p.requireNoViolation("empty page")
	sendBurst(t, c, 200)
	sendReplica(t, c, "llama", "gpu-idle", 1, time.Second)
	beginOn(t, c, "llama", "gpu-stuck", "acme", 1, 1)
	p.waitUntil(`document.querySelector('#trend-time_to_first_token .legend button') && document.querySelector('#engines [data-level=bad]') && document.querySelector('#engines [data-level=none]')`)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1280} {
			p.look(width, 6000, scheme)
			p.waitUntil(`document.querySelector('#slowest tbody tr') && document.querySelector('#compare tbody tr') && document.documentElement.dataset.theme === '` + scheme + `'`)
			p.requireNoViolation(scheme)
			require.LessOrEqual(t, evaluate[float64](p, `document.documentElement.scrollWidth`), float64(width), "the page scrolls sideways")
		}
	}
	p.do(script(`document.querySelector('#slowest [data-request]').click()`))
	p.waitUntil(`document.querySelector('#request .bigstrip')`)
	p.requireNoViolation("page of a request")
}

// requireNoViolation runs axe-core.
func (p *tab) requireNoViolation(what string) {
	p.t.Helper()
	engine, err := os.ReadFile(filepath.Join(testenv.Root(p.t), "internal/page/web/node_modules/axe-core/axe.min.js"))
	if err != nil {
		testenv.Missing(p.t, "needs axe-core: make check-page")
	}
	p.do(script(string(engine) + `; undefined`))
	found := evaluate[[]string](p, `axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations
		.filter(({impact}) => impact === 'serious' || impact === 'critical')
		.map(({id, nodes}) => id + ': ' + nodes.slice(0, 3).map(node => node.html + ' ' + node.failureSummary).join(' | ')))`)
	require.Empty(p.t, found, what)
}
