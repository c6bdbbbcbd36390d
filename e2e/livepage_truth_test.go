// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// replicasConfig extends pageConfig by the dimension that tells replicas apart.
const replicasConfig = pageConfig + `
    dimensions: [gen_ai.request.model, service.instance.id]
`

func startReplicasPage(t *testing.T) *collector {
	t.Helper()
	return startCollector(t, example(t, "quickstart.yaml"), "--config", writeFile(t, t.TempDir(), "page.yaml", replicasConfig))
}

// sendReplica sends requests of four tokens, 10 ms apart, to a replica.
func sendReplica(t *testing.T, c *collector, model, replica string, requests int, first time.Duration) {
	t.Helper()
	attributes, err := json.Marshal(map[string]string{"gen_ai.request.model": model, "service.instance.id": replica})
	require.NoError(t, err)
	var body strings.Builder
	begin := time.Now().Add(-30 * time.Second)
	for i := range requests {
		event := eventsOf(&body, fmt.Sprint(model, replica, first, i), begin)
		event("start", 0, `,"attributes":`+string(attributes))
		for token := range 4 {
			event("chunk", first+time.Duration(token)*10*time.Millisecond, "")
		}
		event("end", first+40*time.Millisecond, "")
	}
	c.post(t, "application/x-ndjson", strings.NewReader(body.String()))
}

// sendReplicas sends to eight fast replicas of a model, and to a slow one with the least traffic.
func sendReplicas(t *testing.T, c *collector) {
	t.Helper()
	for i := range 8 {
		sendReplica(t, c, "llama", fmt.Sprint("gpu-", i), 20+i, 50*time.Millisecond)
	}
	sendReplica(t, c, "llama", "gpu-slow", 5, 4*time.Second)
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
	p := openTab(t, c.pageURL(""))
	for _, screen := range [][2]int64{{1280, 900}, {390, 844}} {
		p.look(screen[0], screen[1], "light")
		p.do(script(`scrollTo(0, 0)`))
		const line = `document.querySelector('#headline-time_to_first_token .worst')`
		p.waitUntil(line + `.textContent.includes('worst: 4.0') && ` + line + `.textContent.endsWith(' · gpu-slow · instance')`)
		p.waitUntil(inView(line))
		p.waitUntil(`document.querySelector('#headline-time_to_first_token').dataset.level === 'good'`) // 5 of 193 are bad
		p.waitUntil(inView(`document.querySelector('nav a[href="#compare"]')`))
		p.waitUntil(`document.querySelector('[data-slo="chat-ttft"] .worst').textContent === 'worst: 0% · gpu-slow · instance'`)
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
