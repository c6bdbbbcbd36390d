// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

func load(tb testing.TB, settings map[string]any) (*Config, error) {
	tb.Helper()
	cfg := DefaultConfig()
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

var coldByDefault = ColdStartConfig{Requests: 10, Duration: 2 * time.Minute, Idle: 15 * time.Minute}

func TestConfig_Default(t *testing.T) {
	cfg, err := load(t, nil)
	require.NoError(t, err)
	require.Equal(t, &Config{Timeline: "drop", Detail: "standard", Distribution: "keep", TrustAnnotations: true, StallThreshold: 500 * time.Millisecond, TPOTDenominator: "standard", ColdStart: configoptional.Default(coldByDefault)}, cfg)
	options := cfg.Options()
	for id := range numbers.Count { // golden files of token_latency have the list of what is left out
		require.Equal(t, id.Row().Full, options.Omitted[id], id.Attribute())
	}
	options.Omitted = [numbers.Count]bool{}
	require.Equal(t, latency.Options{StallThreshold: 500 * time.Millisecond, Denominator: latency.AllButFirst}, options)
}

func TestConfig_EverySetting(t *testing.T) {
	cfg, err := load(t, map[string]any{
		"timeline": "keep", "detail": "full", "distribution": "drop", "trust_annotations": false, "stall_threshold": "1s", "tpot_denominator": "after_first_chunk",
		"phases": true, "join": true, "roll_up": true,
		"fluidity":   map[string]any{"time_to_first_token": "2s", "time_per_output_token": "50ms"},
		"cold_start": map[string]any{"requests": 5, "duration": "1m", "idle": "5m"},
	})
	require.NoError(t, err)
	require.Equal(t, &Config{
		Timeline: "keep", Detail: "full", Distribution: "drop", StallThreshold: time.Second, TPOTDenominator: "after_first_chunk",
		Phases: true, Join: true, RollUp: true,
		Fluidity:  configoptional.Some(FluidityConfig{TimeToFirstToken: 2 * time.Second, TimePerOutputToken: 50 * time.Millisecond}),
		ColdStart: configoptional.Some(ColdStartConfig{Requests: 5, Duration: time.Minute, Idle: 5 * time.Minute}),
	}, cfg)
	require.Equal(t, latency.Options{
		StallThreshold: time.Second, Denominator: latency.AfterFirstChunk,
		Fluidity: latency.Deadlines{FirstToken: 2 * time.Second, NextToken: 50 * time.Millisecond},
		Omitted:  [numbers.Count]bool{numbers.InterTokenLatency: true, numbers.InterChunkLatency: true, numbers.TokensPerChunk: true, numbers.InterAudioLatency: true},
	}, cfg.Options())
}

func TestConfig_Invalid(t *testing.T) {
	tests := map[string]struct {
		settings map[string]any
		message  string
	}{
		"unknown timeline": {
			map[string]any{"timeline": "Keep"}, "`timeline` is \"Keep\"; valid values: keep, drop",
		},
		"cold start of no request": {
			map[string]any{"cold_start": map[string]any{"requests": 0}}, "`requests` is 0; use a number from 1 to 100",
		},
		"cold start without units": {
			map[string]any{"cold_start": map[string]any{"duration": 2, "idle": 15}},
			"`duration` is 2ns; use a unit, such as 2m, or 0 to count requests only\n`idle` is 15ns; use at least 1s, with a unit, such as 15m",
		},
		"unknown detail": {
			map[string]any{"detail": "all"}, "`detail` is \"all\"; valid values: standard, full",
		},
		"unknown distribution": {
			map[string]any{"distribution": "yes"}, "`distribution` is \"yes\"; valid values: keep, drop",
		},
		"stall threshold without a unit": {
			map[string]any{"stall_threshold": 500}, "`stall_threshold` is 500ns; use at least 100µs, with a unit, such as 500ms",
		},
		"stall threshold of zero": {
			map[string]any{"stall_threshold": "0s"}, "`stall_threshold` is 0s; use at least 100µs, with a unit, such as 500ms",
		},
		"unknown denominator": {
			map[string]any{"tpot_denominator": "n-1"}, "`tpot_denominator` is \"n-1\"; valid values: standard, after_first_chunk",
		},
		"only one deadline": {
			map[string]any{"fluidity": map[string]any{"time_to_first_token": "2s"}},
			"fluidity: `time_per_output_token` is 0s; `fluidity` needs both deadlines, each from 100µs to 1h0m0s, with a unit; remove `fluidity` to turn the index off",
		},
		"negative deadline": {
			map[string]any{"fluidity": map[string]any{"time_to_first_token": "-1s", "time_per_output_token": "1s"}},
			"fluidity: `time_to_first_token` is -1s",
		},
		"deadline of a day": {
			map[string]any{"fluidity": map[string]any{"time_to_first_token": "24h", "time_per_output_token": "1s"}},
			"fluidity: `time_to_first_token` is 24h0m0s",
		},
		"trust that is not a boolean": {
			map[string]any{"trust_annotations": "sometimes"}, "trust_annotations",
		},
		"unknown key": {
			map[string]any{"stall_treshold": "1s"}, "stall_treshold",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, test.settings)
			require.ErrorContains(t, err, test.message)
		})
	}
}

func TestConfig_ReportsEveryError(t *testing.T) {
	_, err := load(t, map[string]any{"timeline": "x", "stall_threshold": "-1s", "tpot_denominator": "y"})
	require.ErrorContains(t, err, "timeline")
	require.ErrorContains(t, err, "stall_threshold")
	require.ErrorContains(t, err, "tpot_denominator")
}
