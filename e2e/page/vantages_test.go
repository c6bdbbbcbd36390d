// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
)

// sendVantage sends requests as one vantage saw them. The first ones are bad.
func sendVantage(t *testing.T, otlp, vantage string, requests, bad int) {
	t.Helper()
	spans := make([]map[string]any, requests)
	for i := range spans {
		spans[i] = annotated(map[string]any{"tokenpulse.vantage": vantage})
		if i < bad {
			spans[i]["tokenpulse.slo.met"], spans[i]["tokenpulse.slo.breached"] = []any{}, []any{"chat-tpot"}
		}
	}
	sendAnnotated(t, otlp, spans...)
}

// 40 requests, 8 of them bad for the client: an attainment of 32/40 = 80%. The sum over three vantages is 112/120 = 93.3%.
func TestLivePage_ShowsOneVantageAndOffersTheOthers(t *testing.T) {
	t.Parallel()
	otlp := collector.FreeAddress(t)
	collector.Setenv(t, "OTLP_HTTP_ENDPOINT", otlp)
	c := startForAPI(t)
	sendVantage(t, otlp, "client", 40, 8)
	exposition.WaitForRequests(t, c, 40)
	p := openTab(t, c.PageURL(""))
	attainment := func(text string) string {
		return fmt.Sprintf(`document.querySelector('[data-slo="chat-tpot"] dd')?.textContent === %q`, text)
	}
	p.waitUntil(attainment("80.0%"))
	require.True(t, p.is(`document.querySelector('.vantages').hidden`), "one vantage needs no choice")

	sendVantage(t, otlp, "gateway", 40, 0)
	sendVantage(t, otlp, "engine", 40, 0)
	exposition.WaitForRequests(t, c, 120)
	const control = `document.querySelector('[data-filter="vantage"] select')`
	const line = `document.querySelector('.vantages').textContent`
	p.waitUntil(line + ` === 'As seen by client: 40 requests. Also seen by:gateway (40)engine (40)All (sum)'`)
	require.True(t, p.is(attainment("80.0%")))
	press := func(name string) {
		p.do(script(fmt.Sprintf(`[...document.querySelectorAll('.vantages button')].find(({textContent}) => textContent.startsWith(%q)).click()`, name)))
	}
	press("engine")
	p.waitUntil(attainment("100%"))
	require.Equal(t, []string{"engine"}, query(t, p)["vantage"])

	press("All")
	p.waitUntil(attainment("93.3%"))
	require.True(t, p.is(line+`.startsWith('Sum over 3 vantages: a request counts once for each')`))
	require.True(t, p.is(`document.querySelector('.vantages').classList.contains('banner')`), "a sum is marked")
	require.Equal(t, "All (sum)", p.text(control+`.selectedOptions[0].textContent`), "although the page knows one vantage to filter by so far")
	p.screenshot("vantages-sum")

	p.open(c.PageURL("")) // loads the values to filter by again
	p.waitUntil(`[...(` + control + `?.options ?? [])].map(({textContent}) => textContent).join() === 'Outermost,client,engine,gateway,All (sum)'`)
	p.do(script(control + `.value = 'gateway'; ` + control + `.dispatchEvent(new Event('change'))`))
	p.waitUntil(attainment("100%"))
	p.open(c.PageURL("?vantage=client")) // as alerts link to it
	p.waitUntil(attainment("80.0%"))
	p.screenshot("vantages")

	p.open(c.PageURL(""))
	sendVantage(t, otlp, "server", 100, 0) // the others have fewer than half of it
	p.waitUntil(`document.querySelectorAll('#doubts li').length === 2`)
	p.waitUntil(line + `.startsWith('As seen by server: 100 requests.')`)
	require.True(t, p.is(`document.querySelector('#doubts').textContent.includes('choose it to see its part')`))
	p.screenshot("vantages-doubt")
}
