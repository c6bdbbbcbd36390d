// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// audioSLOs are each missed by the turn that its user interrupts.
const audioSLOs = `[{name: ttft, indicator: time_to_first_token, threshold: 100ms}, {name: tpot, indicator: time_per_output_token, threshold: 1ms}, ` +
	`{name: ttfa, indicator: time_to_first_audio, threshold: 1s}]`

// writeTurns writes spoken turns as a recording: one with text and audio, one of audio only, one of text whose usage counts
// audio, one that its user interrupts, and one that its client cancels after as long a wait.
func writeTurns(t *testing.T) (file string) {
	t.Helper()
	var lines strings.Builder
	turn := func(name, end string, text, audio []int) {
		write := tokenevents.EventsOf(&lines, name, time.Unix(1_795_233_292, 0))
		write("start", 0, `,"resource":{"service.name":"voice"}`)
		for at := range 3000 {
			for channel, times := range map[string][]int{"content": text, "audio": audio} {
				for _, ms := range times {
					if ms == at {
						write("chunk", time.Duration(ms)*time.Millisecond, fmt.Sprintf(`,"channel":%q`, channel))
					}
				}
			}
		}
		write("end", 3*time.Second, end)
	}
	turn("both", `,"finish_reason":"stop"`, []int{200, 300, 400}, []int{250, 350, 850})
	turn("speech", `,"finish_reason":"stop"`, nil, []int{500, 600})
	turn("billed", `,"usage":{"output_tokens":12},"attributes":{"gen_ai.usage.audio.output_tokens":8}`, []int{200, 300, 400, 500}, nil)
	turn("interrupted", `,"interrupted":true`, []int{200, 300}, []int{250})
	turn("gone", `,"cancelled":true`, []int{200, 300}, []int{250})
	return collector.WriteFile(t, t.TempDir(), "turns.jsonl", lines.String())
}

// Audio has numbers of its own on each path, and a turn that its user interrupts is never bad.
func TestAudio_HasItsNumbersOnEachPath(t *testing.T) {
	t.Parallel()
	file := writeTurns(t)
	const metrics = `{metrics: {tokenpulse.inter_audio_chunk_latency: {enabled: true}}, objectives: [{slo: all, objective: 0.9}]}`
	start := map[string]func(t *testing.T) *collector.Collector{
		"spans": func(t *testing.T) *collector.Collector {
			t.Helper()
			return collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config=yaml:processors: {token_latency: {slos: "+audioSLOs+"}}",
				"--config=yaml:exporters: {token_sli: "+metrics+"}")
		},
		"series": func(t *testing.T) *collector.Collector {
			t.Helper()
			collector.ExampleEnvironment(t)
			collector.Setenv(t, "METRICS_FILE", t.TempDir()+"/metrics.jsonl")
			return collector.Start(t, collector.Example(t, "wire-metrics.yaml"), collector.OwnMetricsOff,
				"--config=yaml:receivers: {token_stream: {latency: {slos: "+audioSLOs+"}, series: "+metrics+"}}",
				"--config=yaml:exporters: {token_sli: {metrics: {tokenpulse.inter_audio_chunk_latency: {enabled: true}}}}",
				"--set=receivers.token_stream.series.metrics_flush_interval=50ms")
		},
	}
	for path, start := range start {
		for _, transport := range []string{"ndjson", "json", "protobuf", "grpc-stream"} {
			t.Run(path+" "+transport, func(t *testing.T) {
				c := start(t)
				collector.Run(t, collector.Built(t, "tokenpulse"), "replay", file, "--transport", transport, "--endpoint", c.Endpoint(transport))
				var families map[string]*dto.MetricFamily
				require.Eventually(t, func() bool {
					families = exposition.ScrapeAny(t, c.MetricsURL())
					return exposition.RequestCount(families) == 5
				}, collector.Patience, 50*time.Millisecond)

				success, cancelled := map[string]string{"outcome": "success"}, map[string]string{"outcome": "cancelled"}
				for name, sums := range map[string][2]float64{ // of three requests, and of two
					"tokenpulse_time_to_first_audio_seconds":       {0.250 + 0.500, 0.250 + 0.250},
					"tokenpulse_inter_audio_chunk_latency_seconds": {0.100 + 0.500 + 0.100, 0},
					"tokenpulse_time_to_first_token_seconds":       {0.200 + 0.200, 0.200 + 0.200},
					"tokenpulse_time_per_output_token_seconds":     {0.100 + 0.100, 0.100 + 0.100}, // (400-200)/2, (500-200)/(12-8-1) and (300-200)/1
					"tokenpulse_inter_token_latency_seconds":       {2*0.100 + 3*0.100, 0.100 + 0.100},
				} {
					sum := func(labels map[string]string) float64 {
						return exposition.Find(t, families[name], labels).GetHistogram().GetSampleSum()
					}
					require.InDelta(t, sums[0], sum(success), 1e-6, name)
					if sums[1] > 0 {
						require.InDelta(t, sums[1], sum(cancelled), 1e-6, name)
					}
				}
				for verdict, want := range map[string]float64{
					// both, billed and gone: TTFT and TPOT too long; speech has none of the two; billed has no audio
					"ttft bad": 3, "ttft not_eligible": 2, "ttft good": 0,
					"tpot bad": 3, "tpot not_eligible": 2, "tpot good": 0,
					"ttfa bad": 0, "ttfa not_eligible": 1, "ttfa good": 4,
					"all bad": 3, "all good": 2, "all not_eligible": 0, // the interrupted one is good
				} {
					slo, of, _ := strings.Cut(verdict, " ")
					require.Equal(t, want, exposition.SumOf(t, families, "tokenpulse_slo_requests_total", map[string]string{"slo": slo, "verdict": of}), verdict) //nolint:testifylint // counts are exact
				}
				reasons := map[string]string{"indicator": "time_to_first_token", "reason": "no_token"}
				require.Equal(t, 1.0, exposition.SumOf(t, families, "tokenpulse_requests_unmeasured_total", reasons))                       //nolint:testifylint // a count
				require.Equal(t, 3+12+2.0+2, exposition.SumOf(t, families, "tokenpulse_tokens_total", map[string]string{"type": "output"})) //nolint:testifylint // a count
			})
		}
	}
}
