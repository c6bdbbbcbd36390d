// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import "testing"

// tapConfig writes the spans of the tap as they are, and with the numbers derived from them.
const tapConfig = `
extensions:
  pprof: {endpoint: "${env:PPROF}"}
receivers:
  token_tap:
    endpoint: ${env:TAP_ENDPOINT}
    upstream: {endpoint: "${env:TAP_UPSTREAM}"}
processors:
  token_latency: {detail: full}
exporters:
  token_sli:
  file/sent: {path: "${env:SENT_SPANS_FILE}", flush_interval: 100ms}
  file/derived: {path: "${env:SPANS_FILE}", flush_interval: 100ms}
service:
  extensions: [pprof]
  pipelines:
    traces/sent: {receivers: [token_tap], exporters: [file/sent]}
    traces: {receivers: [token_tap], processors: [token_latency], exporters: [token_sli, file/derived]}
`

// Tap is a Collector with the tap in front of an upstream of the test.
type Tap struct {
	*Collector
	Address       string // of the tap
	Self, Pprof   string
	Sent, Derived string // files of spans
}

// URL returns the address of a path behind the tap.
func (c *Tap) URL(path string) string { return "http://" + c.Address + path }

// StartTap starts a tap in front of an upstream. more are configs that are merged into
// tapConfig.
func StartTap(t *testing.T, upstream string, more ...string) *Tap {
	t.Helper()
	folder := t.TempDir()
	self, arguments := WithSelfMetrics(t)
	c := &Tap{
		Address: FreeAddress(t), Self: self, Pprof: FreeAddress(t), Sent: folder + "/sent.jsonl", Derived: folder + "/derived.jsonl",
	}
	for name, value := range map[string]string{
		"PPROF": c.Pprof, "TAP_ENDPOINT": c.Address, "TAP_UPSTREAM": upstream, "SENT_SPANS_FILE": c.Sent, "SPANS_FILE": c.Derived,
	} {
		Setenv(t, name, value)
	}
	for _, config := range more {
		arguments = append(arguments, "--config", "yaml:"+config)
	}
	c.Collector = Start(t, WriteFile(t, folder, "tap.yaml", tapConfig), arguments...)
	return c
}
