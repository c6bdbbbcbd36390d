// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// tpotObjective extends examples/quickstart.yaml: at most 1% of requests may take more
// than 3 ms per token.
const tpotObjective = `
processors:
  token_latency:
    slos: [{name: tpot, indicator: time_per_output_token, threshold: 3ms}]
exporters:
  token_sli:
    objectives: [{slo: tpot, objective: 0.99}]
`

// One of two models becomes twice as slow per token. The example's rules, with shortened
// durations, page for that model within two evaluations, and stop as quickly.
func TestAlert_FiresForTheSlowModelOnlyWhileItIsSlow(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "prometheus")
	c := startCollector(t, example(t, "quickstart.yaml"), "--config", writeFile(t, t.TempDir(), "objective.yaml", tpotObjective))
	server := startPrometheus(t, program, c.metrics, "native-histograms,exemplar-storage", scaledRules(t))
	long, short := scaled(t, "1h").String(), scaled(t, "5m").String()

	// After 25 healthy evaluations, the long window reaches a burn rate of 14.4 after
	// four seconds of slow requests only. It reaches 6 two and a half evaluations
	// earlier, and 22 as many later.
	sendTraffic(t, c, "steady", "2ms")
	healthy := sendTraffic(t, c, "slowed", "2ms")
	server.waitUntil(t, `count(count_over_time(tokenpulse_slo:burn_rate:`+long+`{slo="tpot", gen_ai_request_model=~"steady|slowed"}[5m]) >= 25) == 2`)
	server.requireHealthyRules(t)
	require.InDelta(t, 2*5, server.query(t, `count({__name__=~"tokenpulse_slo:burn_rate:.+"})`), 0, "two models, five windows")
	require.InDelta(t, 0, server.query(t, `max({__name__=~"tokenpulse_slo:burn_rate:.+"})`), 0)
	require.Empty(t, server.history(t, onRequests+"[5m]"))

	healthy.stop(t)
	slow := sendTraffic(t, c, "slowed", "4ms")
	server.waitUntil(t, `ALERTS{alertname="TokenSLOFastBurn", alertstate="firing"}`)
	// Continue until the long window stays above the limit, so that it cannot end the alert.
	server.waitUntil(t, `tokenpulse_slo:burn_rate:`+long+`{gen_ai_request_model="slowed"} > 25`)
	alerts := server.alerts(t, "TokenSLOFastBurn")
	require.Len(t, alerts, 1)
	require.Equal(t, "firing", alerts[0].State)
	require.Equal(t, map[string]string{
		"alertname": "TokenSLOFastBurn", "severity": "page", "slo": "tpot", "gen_ai_request_model": "slowed",
		"gen_ai_provider_name": "vllm", "vantage": "server", "job": "tokenpulse",
	}, alerts[0].Labels)
	require.Regexp(t, `^SLO tpot burns its error budget [0-9.]+ times too fast, model slowed$`, alerts[0].Annotations["summary"])

	slow.stop(t)
	sendTraffic(t, c, "slowed", "2ms")
	require.Eventually(t, func() bool { return len(server.alerts(t, "TokenSLOFastBurn")) == 0 },
		patience, 100*time.Millisecond, "the alert is still active")
	require.Greater(t, server.query(t, `tokenpulse_slo:burn_rate:`+long+`{gen_ai_request_model="slowed"}`), 14.4, "the short window ended the alert")

	// By the counters alone, the alert is due while more than 14.4 times 1% of the
	// requests in both windows are bad. A scrape is visible only after it has ended.
	burns := server.history(t, fmt.Sprintf("(%s > 0.144 and %s > 0.144)[5m:20ms]", shareOfBad(long), shareOfBad(short)))
	const firing = `ALERTS{alertname="TokenSLOFastBurn", alertstate="firing"}`
	fired := server.history(t, firing+"[5m]")
	require.Len(t, burns, 1)
	require.Len(t, fired, 1)
	scrape := server.query(t, `max_over_time(scrape_duration_seconds[5m])`)
	// A busy machine leaves evaluations out.
	interval := max(server.longestStep(t, `tokenpulse_slo:error_budget{slo="tpot"}`), server.longestStep(t, firing))
	late, tooLong := fired[0].first-burns[0].first, fired[0].last-burns[0].last
	t.Logf("fired %.2f s after it was due, and stopped %.2f s late; scrapes took up to %.3f s, evaluations were up to %.2f s apart", late, tooLong, scrape, interval)
	require.GreaterOrEqual(t, late, -0.02, "the alert fired before it was due")
	require.LessOrEqual(t, late, scrape+2*interval)
	require.LessOrEqual(t, tooLong, 2*interval)

	// Other alerts, at any time, are about the slow model too.
	for _, alert := range server.history(t, onRequests+"[5m]") {
		require.Equal(t, "slowed", alert.labels["gen_ai_request_model"], "%v", alert.labels)
	}
}

// onRequests selects the alerts on requests. Another one is pending after a scrape that took too
// long, as on a busy machine.
const onRequests = `ALERTS{alertname!="TokenMetricsLost"}`

// longestStep returns the longest time between two samples of a series, in seconds.
func (p *prometheus) longestStep(t *testing.T, selector string) (longest float64) {
	t.Helper()
	samples := p.series(t, selector).Values
	require.NotEmpty(t, samples, selector)
	for i := range samples[1:] {
		longest = max(longest, samples[i+1][0].(float64)-samples[i][0].(float64))
	}
	return longest
}

// sendTraffic sends requests to a model until it is stopped or the test ends. All
// succeed. Each has about 150 tokens, so its time per token is near the mean.
func sendTraffic(t *testing.T, c *collector, model, timePerToken string, more ...string) *process {
	t.Helper()
	return start(t, built(t, "tokengen"), append([]string{
		"generate", "--model", model, "--tpot", timePerToken, "--rate", "20", "--prefill", "10ms",
		"--cancel-ratio", "0", "--error-ratio", "0", "--stall-ratio", "0", "--bundle-ratio", "0",
		"--transport", "protobuf", "--endpoint", c.http,
	}, more...)...)
}

// shareOfBad returns the query for the share of bad requests to the slowed model.
func shareOfBad(window string) string {
	const requests = `sum(rate(tokenpulse_slo_requests_total{slo="tpot", gen_ai_request_model="slowed", verdict=~%q}[%s]))`
	return fmt.Sprintf(requests+" / "+requests, "bad", window, "good|bad", window)
}

type alert struct {
	State               string
	Labels, Annotations map[string]string
	ActiveAt            time.Time
}

// alerts returns the pending and firing alerts with a name.
func (p *prometheus) alerts(t *testing.T, name string) []alert {
	t.Helper()
	var answer struct {
		Data struct{ Alerts []alert }
	}
	p.ask(t, "alerts", nil, &answer)
	var named []alert
	for _, alert := range answer.Data.Alerts {
		if alert.Labels["alertname"] == name {
			named = append(named, alert)
		}
	}
	return named
}

// requireHealthyRules checks that each rule was evaluated without an error.
func (p *prometheus) requireHealthyRules(t *testing.T) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health string }
			}
		}
	}
	p.ask(t, "rules", nil, &answer)
	require.NotEmpty(t, answer.Data.Groups)
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			require.Equal(t, "ok", rule.Health, rule.Name)
		}
	}
}
