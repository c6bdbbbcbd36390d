// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// tenDimensions has one dimension with 30 values, one with two, and more of which each has one.
const tenDimensions = `
processors:
  token_latency:
    slos:
      - {name: tpot, indicator: time_per_output_token, threshold: 75ms}
      - {name: tpot-of-one-tenant, indicator: time_per_output_token, threshold: 1ms, match: {tenant.id: tenant-7}}
exporters:
  token_sli:
    dimensions: [gen_ai.request.model, tenant.id, region, one, two, three, four, five, six, seven]
    objectives: [{slo: tpot, objective: 0.99}]
`

// sendTo sends streams of tokens 10 ms apart to 30 tenants. The end of each is followed by more fields.
func sendTo(t *testing.T, c *collector.Collector, streams, tokens int, gap time.Duration, end string) {
	t.Helper()
	var body strings.Builder
	begin := time.Now().Add(-20 * time.Second)
	for i := range streams {
		event := tokenevents.EventsOf(&body, fmt.Sprint(begin.UnixNano(), end, i), begin)
		event("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":"m","tenant.id":"tenant-%d","region":"region-%d","one":"1","two":"2","three":"3","four":"4","five":"5","six":"6","seven":"7"}`, i%30, i%2))
		for token := range tokens {
			event("chunk", 100*time.Millisecond+time.Duration(token)*gap, "")
		}
		event("end", 100*time.Millisecond+time.Duration(tokens)*gap, end)
	}
	c.Post(t, "application/x-ndjson", strings.NewReader(body.String()))
}

const tpotTile = `document.querySelector('#headline-time_per_output_token')`

// tileOf returns JavaScript that finds a tile by its name.
func tileOf(name string) string {
	return `[...document.querySelectorAll('.tile')].find(tile => tile.querySelector('dt').textContent === '` + name + `')`
}

// Failed requests spend the budget of an SLO on latency. The latency itself is under its threshold, and is not red.
func TestLivePage_ANumberHasTheColourOfItsThresholdAndThePillThatOfTheBudget(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "page.yaml", tenDimensions))
	p := openTab(t, c.PageURL(""))
	requireTiles := func(tpot, relation, pill, failed, share string) {
		t.Helper()
		p.waitUntil(fmt.Sprintf(`%s.querySelector('.value').textContent === '%s' && %[1]s.dataset.level === '%[3]s'`, tpotTile, relation, tpot))
		p.waitUntil(fmt.Sprintf(`%s.querySelector('.verdict').dataset.level === '%s' && %[1]s.querySelector('.verdict').textContent.startsWith('tpot: ')`, tpotTile, pill))
		p.waitUntil(fmt.Sprintf(`%s.querySelector('.value').textContent === '%s' && %[1]s.dataset.level === '%[3]s'`, tileOf("Failed"), share, failed))
	}
	sendTo(t, c, 60, 10, 10*time.Millisecond, "")
	requireTiles("good", "10.0 ms≤ 75 ms100 tok/s", "good", "good", "0%≤ 1%")
	colour := func(level string) string {
		return p.text(`getComputedStyle(document.documentElement).getPropertyValue('--` + level + `').trim()`)
	}
	require.NotEqual(t, colour("good"), colour("bad"))

	sendTo(t, c, 20, 0, 0, `,"error":"503"`)
	requireTiles("good", "10.0 ms≤ 75 ms100 tok/s", "bad", "bad", "25.0%> 1%")
	for name, level := range map[string]string{tpotTile: "good", tileOf("Failed"): "bad"} {
		require.True(t, p.is(`(() => { const probe = document.createElement('i'); document.body.append(probe); probe.style.color = 'var(--`+level+`)'; const want = getComputedStyle(probe).color; probe.remove();
			return getComputedStyle((`+name+`).querySelector('.value')).color === want })()`), name)
	}
	require.Equal(t, "20 error", p.text(tileOf("Failed")+`.querySelector('.note').textContent`))

	sendTo(t, c, 300, 10, 100*time.Millisecond, "")
	p.waitUntil(tpotTile + `.dataset.level === 'bad' && ` + tpotTile + `.querySelector('.value').textContent.endsWith('> 75 ms10.0 tok/s')`)
}

// With ten dimensions, the selects that are in use or have few values fill one row; a button shows the others.
func TestLivePage_OffersTheFiltersInUseOrWithFewValuesAndTheRestBehindOneControl(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "page.yaml", tenDimensions))
	sendTo(t, c, 60, 10, 10*time.Millisecond, "")
	few := startPageCollector(t) // before the tab: the page must not outlive it
	sendBurst(t, few, 20)
	p := openTab(t, c.PageURL("?where=seven=7"))
	p.waitUntilLoaded()
	const shown = `[...document.querySelectorAll('.filters > .field')].filter(field => field.checkVisibility()).map(field => field.dataset.filter)`
	const row = `new Set([...document.querySelectorAll('.filters > *')].filter(child => child.checkVisibility()).map(child => child.getBoundingClientRect().bottom)).size === 1`
	offered := evaluate[[]string](p, shown)
	require.Len(t, offered, 7)
	for _, name := range []string{"seven", "tenant.id", "region", "outcome", "by"} { // in use, several values, and the split
		require.Contains(t, offered, name)
	}
	require.True(t, p.is(row), "they fill one row")
	const more = `[...document.querySelectorAll('.filters > button')].find(button => button.ariaExpanded && button.checkVisibility())`
	require.Equal(t, "More filters (6)", p.text(more+`.textContent`))
	p.screenshot("filters-of-ten-dimensions")
	p.tabUntil(`document.activeElement === ` + more)
	p.press(keyEnter)
	require.Len(t, evaluate[[]string](p, shown), 13)
	require.Equal(t, "true", p.text(more+`.ariaExpanded`))
	p.do(script(more + `.click()`))
	require.Equal(t, offered, evaluate[[]string](p, shown))

	// One that is chosen stays.
	p.do(script(`{ const select = document.querySelector('[data-filter="four"] select'); select.value = '4'; select.dispatchEvent(new Event('change')) }`))
	p.waitUntil(shown + `.includes('four')`)
	require.Equal(t, "More filters (6)", p.text(more+`.textContent`))

	p.open(few.PageURL(""))
	p.waitUntilLoaded()
	require.Len(t, evaluate[[]string](p, shown), evaluate[int](p, `document.querySelectorAll('.filters > .field').length`), "few dimensions are all offered")
	require.True(t, p.is(more+` === undefined`))
}

// Tiles fill their rows at each width, with and without open streams, and no text of theirs is cut off.
func TestLivePage_TilesFillTheirRowsAndShowTheWholeDiagnosis(t *testing.T) {
	t.Parallel()
	otlp := collector.FreeAddress(t)
	for name, c := range map[string]*collector.Collector{"with open streams": startPageCollector(t), "without": startPageWithoutReceiver(t, otlp)} {
		p := openTab(t, c.PageURL(""))
		if name != "without" {
			sendTo(t, c, 30, 1, 0, "")
			sendTo(t, c, 30, 40, 0, `,"error":"timeout"`) // at one time: something held them back
		} else {
			sendOneSpan(t, otlp)
		}
		p.waitUntilLoaded()
		if name != "without" {
			p.waitUntil(tileOf("Unmeasured") + `.textContent.includes('buffered between engine and observer')`)
		}
		for _, width := range []int64{390, 768, 1000, 1280, 1500, 1900, 2560} {
			p.look(width, 900, "light")
			rows := evaluate[[]string](p, `(() => {
				const tiles = document.querySelector('.tiles').getBoundingClientRect();
				const ends = new Map();
				for (const tile of document.querySelectorAll('.tile')) {
					if (!tile.checkVisibility()) continue;
					const {top, right} = tile.getBoundingClientRect();
					ends.set(top, Math.max(ends.get(top) ?? 0, right));
				}
				return [...ends].filter(([, right]) => Math.abs(right - tiles.right) > 1).map(([top, right]) => top + ' ends at ' + right + ' of ' + tiles.right);
			})()`)
			require.Empty(t, rows, "%s, %d wide", name, width)
			require.Empty(t, evaluate[[]string](p, `[...document.querySelectorAll('.tile .note, .tile .value')].filter(text => text.scrollHeight > text.clientHeight + 1 || text.scrollWidth > text.clientWidth + 1).map(text => text.textContent)`), "%s, %d wide", name, width)
		}
	}
}

// sendOneSpan sends the span of a model call to an otlp receiver.
func sendOneSpan(t *testing.T, otlp string) {
	t.Helper()
	now := time.Now().Unix()
	collector.PostSpans(t, otlp, "application/json", fmt.Appendf(nil, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",
		"name":"chat","kind":3,"startTimeUnixNano":"%[1]d000000000","endTimeUnixNano":"%[1]d750000000","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},
		{"key":"tokenpulse.request.duration","value":{"doubleValue":0.75}},{"key":"tokenpulse.time_to_first_token","value":{"doubleValue":0.25}}]}]}]}]}`, now))
}
