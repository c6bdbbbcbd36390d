// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

func load(t *testing.T, name string) (*Config, error) {
	t.Helper()
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	section, err := file.Sub(component.NewIDWithName(metadata.Type, name).String())
	require.NoError(t, err)
	config := createDefaultConfig().(*Config)
	if err := section.Unmarshal(config); err != nil {
		return nil, err
	}
	return config, confmap.Validate(config)
}

func TestConfig_ReadsKeys(t *testing.T) {
	config, err := load(t, "")
	require.NoError(t, err)
	require.Equal(t, createDefaultConfig(), config)
	require.Equal(t, "localhost:9464", config.Server.NetAddr.Endpoint)

	config, err = load(t, "full")
	require.NoError(t, err)
	require.Equal(t, "0.0.0.0:9999", config.Server.NetAddr.Endpoint)
	require.Equal(t, series.Dimensions{
		{Attribute: "gen_ai.request.model"},
		{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{1000, 8000}, Label: "prompt_tokens"},
		{Attribute: "tokenpulse.cached_input.share", Bands: []float64{0.5}},
		{Attribute: "deployment.environment.name"},
	}, config.Shared.Series.Dimensions)
	require.Equal(t, 50, config.Shared.Series.MaxSeries)
	require.Equal(t, 10*time.Minute, config.Shared.Series.SeriesExpiration)
	require.Equal(t, []float64{50, 99.9}, config.Percentiles)
	require.InDeltaSlice(t, []float64{0.5, 0.999}, config.options().Quantiles, 1e-12)
	require.Equal(t, series.Selection{"tokenpulse.output_token_rate": true, "tokenpulse.phase.duration": false}, config.options().Metrics)
	require.Equal(t, []time.Duration{30 * time.Second, 90 * time.Second}, config.Windows)
	require.Equal(t, time.Minute, config.ZeroFor)
	require.Equal(t, map[string][]float64{"inter_token_latency": {0.001, 0.01, 0.1}, "phase.duration": {1, 10}}, config.ClassicBuckets)

	require.Equal(t, []keeper.Objective{
		{SLO: "chat-tpot", Objective: 0.95, Window: 720 * time.Hour},
		{SLO: "all", Objective: 0.9, Window: 168 * time.Hour},
	}, config.Shared.Objectives)
	require.Equal(t, dedup.Config{Horizon: time.Hour, MaxSpans: 5000}, config.Shared.Deduplication)
	pair := compare.Pair{Dimension: "deployment.environment.name", Baseline: "prod", Candidate: "canary"}
	bySLO, byPercentile := pair, pair
	bySLO.SLO = "chat-tpot"
	byPercentile.Vantage, byPercentile.Indicator, byPercentile.Percentile = "engine", "time_to_first_token", 95
	require.Equal(t, []compare.Question{
		{Pair: bySLO, Tolerance: 0.5, Alpha: 0.05},
		{Pair: byPercentile, Tolerance: 0.2, Alpha: 0.01, ExpectedShare: 0.1},
	}, config.questions())

	config, err = load(t, "conventions")
	require.NoError(t, err)
	require.Equal(t, conventions.Config{
		GenAI: []string{"v1.41", "latest"}, Vantages: []string{"client", "engine"}, Attributes: []string{"gen_ai.request.model"},
	}, config.Shared.Conventions)
	config, err = load(t, "conventions_one")
	require.NoError(t, err)
	require.Equal(t, conventions.Config{GenAI: []string{"latest"}}, config.Shared.Conventions)

	config, err = load(t, "deduplication_off")
	require.NoError(t, err)
	require.Equal(t, dedup.Config{MaxSpans: 1_000_000}, config.Shared.Deduplication, "the other default stays")

	config, err = load(t, "no_gauges")
	require.NoError(t, err)
	require.Empty(t, config.Percentiles)
	require.Empty(t, config.Windows)
}

func TestConfig_RejectsInvalidKeys(t *testing.T) {
	for name, want := range map[string]string{
		"endpoint_empty":               "`endpoint` is empty",
		"share_by_another_name":        "unknown key \"max_requests_per_client\"; use `max_share_per_client`; valid keys: ",
		"share_too_large":              "`max_share_per_client` is 2; use a fraction above 0, such as 0.1, or 1 to let one client hold all",
		"unknown_key":                  "unknown key \"end_point\"; valid keys: ",
		"dimension_twice":              "`dimensions` has both \"a.b\" and \"a_b\"",
		"dimension_reserved":           "Prometheus reserves labels",
		"dimension_reserved_bands":     "Prometheus reserves labels",
		"dimension_unknown_key":        "unknown key \"band\" in `dimensions::1`; valid keys: attribute, bands, label",
		"dimension_number":             "`dimensions::1` is 7; use the name of an attribute, or a section with the keys attribute, bands, label",
		"dimension_bound_in_words":     "`dimensions::0::bands::0` is \"1k\"; use a number, such as 1000",
		"dimension_bounds_descend":     "`dimensions::0::bands` has 1000 after 8000",
		"dimension_ours":               "sets the label \"vantage\" itself",
		"max_series_zero":              "`max_series` is 0",
		"expiration_too_short":         "`series_expiration` is 1ms",
		"percentile_too_high":          "`percentiles` has 100; use 1 to below 100",
		"percentile_fraction":          "`percentiles` has 0.99; use 1 to below 100, such as 99",
		"percentile_twice":             "`percentiles` has 50 twice",
		"metric_unknown":               "`metrics` has the unknown metric \"tokenpulse.ttft\"; valid names: tokenpulse.audio.real_time_factor, tokenpulse.",
		"metric_empty":                 "`enabled` is missing",
		"metric_unknown_key":           "enabld",
		"zero_for_negative":            "`zero_for` is -1s; use at least the scrape interval",
		"zero_for_too_long":            "`zero_for` is 11m0s; use at least the scrape interval of Prometheus, up to 10m0s, or 0",
		"window_zero":                  "`windows` has 0s",
		"window_too_long":              "`windows` has 73h0m0s",
		"window_broken_second":         "whole seconds",
		"window_twice":                 "`windows` has 1m0s twice",
		"windows_too_many":             "`windows` has 7 entries",
		"buckets_unknown":              "`classic_buckets` has the unknown histogram \"time_to_last_token\"; valid names: audio.real_time_factor, inter_audio_chunk_latency, inter_chunk_latency,",
		"buckets_empty":                "`classic_buckets::request.duration` is empty",
		"buckets_not_ascending":        "has 2 after 3",
		"buckets_equal":                "has 1 after 1",
		"buckets_not_positive":         "has the bound 0",
		"buckets_infinite":             "has the bound +Inf",
		"buckets_not_a_number":         "has the bound NaN",
		"slo_empty":                    "`objectives::0::slo` is empty",
		"slo_twice":                    "`objectives::1::slo` is \"a\", which already has an objective at `objectives::0`",
		"slo_window_zero":              "`objectives::0::window` is 0s; use 1h to 2160h",
		"slo_objective_missing":        "`objectives::0::objective` is 0",
		"slo_unknown_key":              "windw",
		"deduplication_horizon_short":  "`deduplication::horizon` is 10ns; use 1s to 24h",
		"deduplication_max_spans_zero": "`deduplication::max_spans` is 0; use 2",
		"deduplication_unknown_key":    "horizn",

		"compare_dimension":   "`compare::0::dimension` is \"service.version\"; use one of `dimensions`: service.name, ",
		"compare_empty":       "`compare::0::candidate` is empty; enter the dimension's value",
		"compare_both":        "`compare::0::indicator` is given, and `slo`, too; remove",
		"compare_indicator":   "`compare::0::indicator` is \"ttft\"; use one of time_to_first_token, ",
		"compare_percentile":  "`compare::0::percentile` is 0.95; use 1 to below 100, such as 95",
		"compare_twice":       "`compare::1` has the pair of an entry before",
		"compare_unknown_key": "unknown key \"base\"",

		"conventions_generation":        "`conventions::gen_ai` has \"v1.40\"; valid values: v1.41, latest",
		"conventions_vantage":           "`conventions::vantages` has \"clients\"; valid values: client, gateway, server, engine",
		"conventions_attribute":         "`conventions::attributes` has \"service.name\"; valid values: gen_ai.operation.name, ",
		"conventions_port":              "`conventions::attributes` has \"server.port\" without \"server.address\"; add that",
		"conventions_without_gen_ai":    "`conventions` has no `gen_ai`",
		"conventions_unknown_key":       "unknown key \"vantage\" in `conventions`; valid keys: gen_ai, vantages, attributes",
		"conventions_not_a_list":        "`conventions::gen_ai` is 1.41; use",
		"conventions_metric_of_another": "`metrics` has \"gen_ai.client.token.usage\", which is not published; add its generation to `conventions::gen_ai`",
		"dimension_slo":                 "sets the label \"slo\" itself",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, name)
			require.ErrorContains(t, err, want)
		})
	}
}

// Two Collectors in one process share the list of idle exporters, so it must not read their configurations.
func TestConfig_CountsAsIdleWithTheEndpointItWasValidatedWith(t *testing.T) {
	t.Parallel()
	config := createDefaultConfig().(*Config)
	require.NoError(t, config.Unmarshal(confmap.NewFromStringMap(map[string]any{"endpoint": "localhost:4712"})))
	require.NotContains(t, inprocess.IdleExporters.All(), "localhost:4712", "no Collector starts with it yet")
	require.NoError(t, config.Validate())
	require.Contains(t, inprocess.IdleExporters.All(), "localhost:4712")
	config.Server.NetAddr.Endpoint = "localhost:4713"
	require.Contains(t, inprocess.IdleExporters.All(), "localhost:4712")
	exporter, err := createTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), config)
	require.NoError(t, err)
	require.NotContains(t, inprocess.IdleExporters.All(), "localhost:4712", "a pipeline has it")
	require.NoError(t, exporter.Shutdown(t.Context()))
}

func TestConfig_InvalidOneIsNotIdle(t *testing.T) {
	t.Parallel()
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint, config.ZeroFor = "localhost:4714", -1
	require.Error(t, config.Validate())
	require.NotContains(t, inprocess.IdleExporters.All(), "localhost:4714")
}
