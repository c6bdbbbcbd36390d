// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// sendGlossaryRequests sends the example of many glossaries to two models: 300 ms to the first token, then 60 tokens per
// second, 240 tokens: 4.3 s.
func sendGlossaryRequests(t *testing.T, c *collector.Collector, requests int) {
	t.Helper()
	var body strings.Builder
	begin := time.Now().Add(-20 * time.Second)
	at := func(token int) time.Duration { return 300*time.Millisecond + time.Duration(token)*time.Second/60 }
	for i := range requests {
		event := tokenevents.EventsOf(&body, fmt.Sprint("glossary-", i), begin)
		event("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":"model-%d","gen_ai.usage.input_tokens":1000}`, i%2))
		for token := range 240 {
			event("chunk", at(token), "")
		}
		event("end", at(239), "")
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
}

// Wherever the page has a TPOT, the output token rate stands beside it.
func TestLivePage_TPOTHasItsInverseAsSecondNumber(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendGlossaryRequests(t, c, 20)
	var now struct {
		Indicators map[string]map[string]float64
	}
	require.NoError(t, json.Unmarshal(collector.Get(t, c.PageURL("api/v1/now"), "application/json"), &now))
	tpot, duration := now.Indicators["time_per_output_token"]["p95"], now.Indicators["request_duration"]["p95"]
	require.InEpsilon(t, 1.0/60, tpot, 1e-6)
	require.InEpsilon(t, 4.3, duration, rounding)

	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	text := func(expression string) string { return p.text(`(` + expression + `).textContent`) }
	const both = "16.7 ms · 60.0 tok/s"
	require.InDelta(t, tpot, shownLatency(t, "time_per_output_token", both), tpot*rounding)
	p.waitUntil(tpotTile + `.querySelector('.value').textContent === '16.7 ms> 12 ms60.0 tok/s'`)
	requireSeparator(p)
	require.Contains(t, text(`document.querySelector('[data-slo="chat-tpot"] .rule')`), "Time per output token ≤ 12 ms · ≥ 83.3 tok/s")
	require.Equal(t, []string{both, both, both}, evaluate[[]string](p, legend("time_per_output_token", "model-0")))
	require.Equal(t, []string{"300 ms", "300 ms", "300 ms"}, evaluate[[]string](p, legend("time_to_first_token", "model-0")))

	p.show("load")
	p.waitUntil(`document.querySelector('#load .caption').textContent.startsWith('20 requests at ')`) // an open slot has no load yet
	p.do(script(`document.querySelector('#load .plot').focus()`))
	p.press(keyEnd)
	p.waitUntil(`document.querySelector('#load .caption').textContent.includes(': p50 ` + both + `, p95 ` + both + `, p99 ` + both + ` · ')`)
	p.show("compare")
	p.waitUntil(`document.querySelectorAll('#compare .time_per_output_token td.number').length > 0`)
	require.Equal(t, both, text(`document.querySelector('#compare .time_per_output_token td.number')`))
	p.show("slowest")
	p.waitUntil(`document.querySelectorAll('#slowest tbody tr').length === 12`)
	require.Equal(t, both, text(`document.querySelector('#slowest tbody tr').children[3]`))
	p.screenshot("speed")
	p.do(script(`document.querySelector('#slowest [data-request]').click()`))
	p.waitUntil(`document.querySelector('#request .bigstrip canvas')`)
	require.Equal(t, both, text(`[...document.querySelectorAll('#request dt')].find(name => name.textContent === 'TPOT').nextSibling`))
}

// requireSeparator fails unless a separator is in front of the second number of the tile, and cut off where that begins a line. It
// is drawn left of the number.
func requireSeparator(p *tab) {
	p.t.Helper()
	const separator = `(tile => {
		const [value, second] = ['.value', '.second'].map(part => tile.querySelector(part).getBoundingClientRect());
		const drawn = getComputedStyle(tile.querySelector('.second'), '::before');
		const left = second.left + parseFloat(drawn.left), right = left + parseFloat(drawn.width);
		const cut = right <= value.left && getComputedStyle(tile.querySelector('.value')).overflowX === 'clip';
		const between = left >= value.left && right < second.left;
		return [second.left - value.left < 1 ? 'first' : 'behind', cut ? 'cut' : between ? 'shown' : 'crossed', drawn.content].join(' ')
	})(` + tpotTile + `)`
	for width, want := range map[int64]string{1000: `behind shown "·"`, 1280: `first cut "·"`, 1920: `behind shown "·"`} {
		p.look(width, 900, "light")
		require.Equal(p.t, want, p.text(separator), "%d pixels", width)
		p.screenshot(fmt.Sprint("separator-", width))
	}
}
