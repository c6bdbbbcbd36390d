// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build prometheus

package prometheus

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const everyRequestIsBad = `
processors:
  token_latency:
    slos: [{name: impossible, indicator: time_to_first_token, threshold: 1ns}]
`

func TestPrometheus3_FirstErrorsCountInTheShippedRules(t *testing.T) {
	for _, version := range []string{"3.5", "3.14"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			requireFirstErrorsCount(t, collector.Built(t, path.Join("prometheus", version, "prometheus")))
		})
	}
}

// Each row of docs/prometheus.md names a version, its feature flags, its scrape settings,
// and what it stores of a histogram. With all of them, the verdict counter has exemplars.
func TestPrometheusPage_EverySettingStoresWhatItSays(t *testing.T) {
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "slo.yaml", everyRequestIsBad))
	collector.Replay(t, c, collector.DemoRecording(t))
	values := 0.
	for _, metric := range exposition.Scrape(t, c)["tokenpulse_time_to_first_token_seconds"].GetMetric() {
		values += float64(metric.GetHistogram().GetSampleCount())
	}

	rows := markdown.TableRows(markdown.Read(t, "docs/prometheus.md"))
	require.NotEmpty(t, rows)
	for _, row := range rows {
		require.Len(t, row, 4)
		for i := range row {
			row[i] = strings.Trim(row[i], " `")
		}
		version, flags, settings, stored := row[0], strings.Split(row[1], " ")[0], row[2], row[3]
		t.Run(strings.Join(row[:3], " "), func(t *testing.T) {
			t.Parallel()
			program := path.Join("prometheus", version, "prometheus")
			if version == "2.42" {
				program = testenv.Program(t, "prometheus")
			} else {
				program = collector.Built(t, program)
			}
			p := promserver.Run(t, program, fmt.Sprintf(`
scrape_configs:
  - {job_name: tokenpulse, scrape_interval: 500ms, scrape_timeout: 500ms, static_configs: [{targets: [%q]}], %s}
`, c.Metrics, settings), "--enable-feature", strings.Trim(flags+",exemplar-storage", ","))
			p.WaitUntil(t, "tokenpulse_requests_total")

			classic := p.ResultsAt(t, `sum(tokenpulse_time_to_first_token_seconds_bucket{le="+Inf"})`, "")
			native := p.ResultsAt(t, `histogram_count(sum(tokenpulse_time_to_first_token_seconds))`, "")
			for kind, results := range map[string][]promserver.Result{"classic": classic, "native": native} {
				if !strings.Contains(stored, kind) {
					require.Empty(t, results, kind)
					continue
				}
				require.Len(t, results, 1, kind)
				require.InDelta(t, values, promserver.Number(t, results[0].Value), 0, kind)
			}
			require.NotEmpty(t, p.ExemplarTraces(t, `tokenpulse_slo_requests_total{verdict="bad"}`))
		})
	}
}

// The rules and the config mean the same in Prometheus 3.
func TestPrometheus3_ExampleIsValidAndRaisesTheExpectedAlerts(t *testing.T) {
	tool := collector.Built(t, "prometheus/3.14/promtool")
	collector.Run(t, tool, "check", "config", prometheusExample(t, "prometheus.yaml"))
	collector.Run(t, tool, "test", "rules", prometheusExample(t, "rules_test.yaml"), prometheusExample(t, "engines_test.yaml"))
}

// With the flags of the example, 3.14 stores classic buckets. With native and classic ones, each
// query has one answer.
func TestPrometheus3_QueriesAndPanelsAnswerRight(t *testing.T) {
	flags := shippedFlags(t)
	long, latest := collector.Built(t, "prometheus/3.5/prometheus"), collector.Built(t, "prometheus/3.14/prometheus")
	const scrapeNative = "scrape_native_histograms: true"
	setups := map[string]prometheusSetup{
		"3.5, native":              {program: long, flags: flags, native: true},
		"3.5, classic":             {program: long, flags: "exemplar-storage"},
		"3.14, native":             {program: latest, flags: flags, scrapeSettings: scrapeNative, native: true},
		"3.14, classic":            {program: latest, flags: flags},
		"3.14, native and classic": {program: latest, flags: flags, scrapeSettings: scrapeNative + ", always_scrape_classic_histograms: true", native: true},
	}
	t.Run("queries of the page", func(t *testing.T) { requireRightAnswers(t, setups) })
	t.Run("queries of standard metrics", func(t *testing.T) { requireStandardAnswers(t, setups) })
	t.Run("dashboards", func(t *testing.T) { requireRightPanels(t, setups) })
}

// pushedStandard returns the configuration of a connector that pushes the standard metrics to a Prometheus.
func pushedStandard(address string) string {
	return fmt.Sprintf(`
connectors:
  token_sli/standard: {metrics_flush_interval: 300ms, conventions: {gen_ai: [v1.41, latest]}}
exporters:
  otlp_http: {endpoint: "http://%s/api/v1/otlp"}
service:
  pipelines:
    traces: {exporters: [token_sli, file/derived, token_sli/standard]}
    metrics: {receivers: [token_sli/standard], exporters: [otlp_http]}
`, address)
}

// The queries of the conventions' migration guide count recorded calls as a recount does, each with a translation of
// names in which it works.
func TestPrometheus3_GuideQueriesOfPushedMetricsEqualARecount(t *testing.T) {
	for strategy, test := range map[string]struct {
		heading string
		names   []string // as the table of the page says
	}{
		"NoTranslation": {"NoTranslation", []string{
			"gen_ai.client.operation.duration_count", "gen_ai.client.inference.usage.input_tokens", "gen_ai.client.token.usage_sum",
		}},
		"NoUTF8EscapingWithSuffixes": {"NoUTF8EscapingWithSuffixes", []string{
			"gen_ai.client.operation.duration_seconds_bucket", "gen_ai.client.inference.usage.input_tokens_total", "gen_ai.client.token.usage_count",
		}},
		"UnderscoreEscapingWithSuffixes": {"Underscores", []string{
			"gen_ai_client_operation_duration_seconds_sum", "gen_ai_client_inference_usage_input_tokens_total", "gen_ai_client_token_usage_bucket",
		}},
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			p := promserver.Run(t, collector.Built(t, "prometheus/3.14/prometheus"), "otlp: {translation_strategy: "+strategy+"}", "--web.enable-otlp-receiver")
			s := startStandardCalls(t, pushedStandard(p.Address))
			const passes = 5
			for range passes {
				s.pass(t)
			}
			s.tap.Stop(t) // flushes
			for _, name := range test.names {
				require.Positive(t, p.Query(t, fmt.Sprintf("count({%q})", name)), name)
			}
			for title, query := range standardQueries(t, test.heading) {
				t.Run(title, func(t *testing.T) { s.require(t, p, title, query, lastPush(t, p), passes) })
			}
		})
	}
}

// lastPush returns the time of the last data points.
func lastPush(t *testing.T, p *promserver.Server) string {
	t.Helper()
	return fmt.Sprintf("%.3f", p.Query(t, `max(timestamp({__name__=~"gen_ai.client.inference.usage.input_tokens(_total)?"}))`))
}
