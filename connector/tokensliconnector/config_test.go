// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/publish"
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
	require.Equal(t, []string{"service.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.operation.name"}, config.Publish.Shared.Series.Dimensions.Names())
	require.Equal(t, 2000, config.Publish.Shared.Series.MaxSeries)
	require.Equal(t, time.Hour, config.Publish.Shared.Series.SeriesExpiration)
	require.Equal(t, 15*time.Second, config.Publish.FlushInterval)
	require.Equal(t, publish.Cumulative, config.Publish.Temporality)

	config, err = load(t, "full")
	require.NoError(t, err)
	require.Equal(t, []string{"gen_ai.request.model", "deployment.environment.name"}, config.Publish.Shared.Series.Dimensions.Names())
	require.Equal(t, 50, config.Publish.Shared.Series.MaxSeries)
	require.Equal(t, 10*time.Minute, config.Publish.Shared.Series.SeriesExpiration)
	require.Equal(t, time.Minute, config.Publish.FlushInterval)
	require.Equal(t, publish.Delta, config.Publish.Temporality)
	require.Equal(t, dedup.Config{Horizon: time.Hour, MaxSpans: 1_000_000}, config.Publish.Shared.Deduplication)

	require.Equal(t, []string{"user.id", "tenant.id"}, config.EventAttributes)
	require.Equal(t, series.Selection{"tokenpulse.stalls": false, "tokenpulse.streams.open": false, "tokenpulse.engine.state": false, "tokenpulse.engine.silence": false}, config.Publish.Shared.Selection())

	_, err = load(t, "for_ever")
	require.NoError(t, err)

	config, err = load(t, "objectives")
	require.NoError(t, err)
	require.Len(t, config.Publish.Shared.Objectives, 1)
	require.Equal(t, 720*time.Hour, config.Publish.Shared.Objectives[0].Window)
}

func TestConfig_RejectsInvalidKeys(t *testing.T) {
	for name, want := range map[string]string{
		"deduplication_too_long":   "`deduplication::horizon` is 25h0m0s; use 1s to 24h",
		"dimension_ours":           "sets the label \"vantage\" itself",
		"max_series_zero":          "`max_series` is 0",
		"interval_without_unit":    "`metrics_flush_interval` is 15ns",
		"interval_over_expiration": "series would expire before they are sent",
		"temporality_unknown":      "`temporality` is \"delta_only\"; choose cumulative or delta",
		"objective_too_high":       "`objectives::0::objective` is 95",
		"unknown_key":              "max_serise",
		"metric_unknown":           "`metrics` has the unknown metric \"tokenpulse.ttft\"; valid names: tokenpulse.audio.real_time_factor, tokenpulse.",
		"metric_of_the_exporter":   "only the token_sli exporter has percentile gauges",
		"event_attribute_text":     "`event_attributes` has \"gen_ai.input.messages\", which may hold text of prompts",
		"event_attribute_ours":     "`event_attributes` has \"tokenpulse.slo.breached\", but events have the attributes of tokenpulse already",
		"event_attribute_twice":    "`event_attributes` has \"user.id\" twice",
		"event_attribute_empty":    "`event_attributes` entry 2 is empty",
		"event_attributes_many":    "`event_attributes` has 17 entries; the maximum is 16",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, name)
			require.ErrorContains(t, err, want)
		})
	}
}
