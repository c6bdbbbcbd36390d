// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// hatchedFrom returns JavaScript that finds where the hatching at the end of the strip of a request begins, as a share of its
// width, or -1 without one.
const hatchedFrom = `(() => {
	const canvas = document.querySelector('#request .bigstrip canvas'), {width, height} = canvas;
	const hex = getComputedStyle(document.documentElement).getPropertyValue('--bad').trim();
	const want = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
	const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
	const bad = x => { for (let y = 0; y < height; y++) { const i = 4 * (y * width + x); if (data[i + 3] > 200 && want.every((value, c) => Math.abs(data[i + c] - value) < 40)) return true } return false };
	let from = -1;
	for (let x = width - 1, gap = 0; x >= 0 && gap < 20; x--) { if (bad(x)) { from = x; gap = 0 } else gap++ }
	return from / width;
})()`

// A request that stops after some tokens, one that never gets any, and one whose end nobody reports: the page of each shows its
// longest gap, and hatches it.
func TestLivePage_HatchesTheOpenTailOfARequestThatHung(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--set", "receivers.token_stream.idle_timeout=2s")
	var body strings.Builder
	begin := time.Now().Add(-50 * time.Second)
	for model, end := range map[string]string{"cancelled": `,"cancelled":true`, "failed": `,"error":"timeout"`, "waited": `,"error":"timeout"`, "good": "", "lost": "none"} {
		event := tokenevents.EventsOf(&body, model, begin)
		event("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":%q}`, model))
		for token := range 10 {
			if model != "waited" {
				event("chunk", time.Duration(token+1)*300*time.Millisecond, "")
			}
		}
		if end != "none" {
			event("end", 40*time.Second, end)
		}
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
	p := openTab(t, c.PageURL(""))
	p.expect("willReadFrequently") // the test reads pixels, the page does not
	p.waitUntilLoaded()
	p.show("slowest")
	const rows = `[...document.querySelectorAll('#slowest tbody tr')]`
	p.waitUntil(rows + `.length === 5`)
	p.screenshot("hung")
	for model, want := range map[string]struct {
		gap, tag string
		from     float64
	}{
		"cancelled": {"37.0 s, at the end", "no token for 37.0 s", 3. / 40},
		"failed":    {"37.0 s, at the end", "no token for 37.0 s", 3. / 40},
		"waited":    {"40.0 s, at the end", "no token for 40.0 s", 0},
		"good":      {"300 ms", "", 0},
		"lost":      {"300 ms", "", 1 / 1.1},
	} {
		row := rows + `.find(row => row.querySelector('.model bdi').textContent === '` + model + `')`
		tags := p.text(`[...` + row + `.querySelectorAll('.tag')].map(tag => tag.textContent).join()`)
		require.Equal(t, want.tag != "", strings.Contains(tags, "no token for"), "%s: %s", model, tags)
		require.Contains(t, tags, want.tag, model)
		p.do(script(row + `.querySelector('[data-request]').click()`))
		p.waitUntil(`document.querySelector('#request .bigstrip canvas')`)
		p.waitUntil(`[...document.querySelectorAll('#request dt')].find(name => name.textContent === 'Longest gap').nextSibling.textContent === '` + want.gap + `'`)
		if model == "good" {
			require.Negative(t, evaluate[float64](p, hatchedFrom))
		} else {
			require.Eventually(t, func() bool { return math.Abs(evaluate[float64](p, hatchedFrom)-want.from) < 0.01 }, collector.Patience, 100*time.Millisecond, model) // drawn after the next layout
		}
		p.screenshot("hung-" + model)
		p.do(script(`document.querySelector('#request .back').click()`))
		p.show("slowest")
		p.waitUntil(rows + `.length === 5`)
	}
}
