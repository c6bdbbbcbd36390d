// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// coldConfig extends replicasConfig. A replica that began before the Collector is not cold.
const coldConfig = `
processors:
  token_latency: {cold_start: {requests: 50, idle: 1s}}
exporters:
  token_sli: {dimensions: [gen_ai.request.model, service.instance.id, tokenpulse.cold]}
`

// A new replica is cold, and slower than the one that is slow. With a filter, tiles, phases and the slowest requests show the
// latter.
func TestLivePage_LeavesColdStartsOut(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, folder, "page.yaml", replicasConfig),
		"--config", collector.WriteFile(t, folder, "cold.yaml", coldConfig))
	sendReplicas(t, c)
	sendReplicaAt(t, c, "llama", "gpu-new", 40, 9*time.Second, time.Now().Add(time.Second))
	p := openTab(t, c.PageURL(""))
	waitFor := func(replica string, p95 float64, unit string) {
		t.Helper()
		p.do(script(`scrollTo(0, 0)`))
		p.waitUntil(fmt.Sprintf(`(([number, unit]) => Math.abs(number / %v - 1) < 0.01 && unit === '%s')(document.querySelector('#headline-time_to_first_token .value span').textContent.split(' '))`, p95, unit))
		for _, line := range []string{"#headline-time_to_first_token .worst", "[data-slo=chat-ttft] .worst"} {
			p.waitUntil(`document.querySelector('` + line + `').textContent.startsWith('` + replica + ` · instance: ')`)
		}
		p.show("phases")
		p.waitUntil(`document.querySelector('#phases .row bdi').textContent === '` + replica + `'`)
		p.show("slowest")
		p.waitUntil(`document.querySelector('#slowest tbody tr small').textContent.startsWith('` + replica + ` ')`)
	}
	waitFor("gpu-new", 9, "s")
	const filter = `document.querySelector('[data-filter="tokenpulse.cold"]')`
	p.waitUntil(filter + `.textContent.startsWith('cold start')`)
	p.do(script(`{ const select = ` + filter + `.querySelector('select'); select.value = [...select.options].find(option => option.textContent === '(not set)').value; select.dispatchEvent(new Event('change')) }`))
	waitFor("gpu-slow", 50, "ms")
	p.screenshot("without-cold-starts")
}
