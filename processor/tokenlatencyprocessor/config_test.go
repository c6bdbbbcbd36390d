package tokenlatencyprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/latency"
)

func load(t *testing.T, settings map[string]any) (*Config, error) {
	t.Helper()
	cfg := createDefaultConfig()
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestDefaultConfig(t *testing.T) {
	cfg, err := load(t, nil)
	require.NoError(t, err)
	require.Equal(t, &Config{Timeline: "drop", StallThreshold: 500 * time.Millisecond, TPOTDenominator: "standard"}, cfg)
	require.Equal(t, latency.Options{StallThreshold: 500 * time.Millisecond, Denominator: latency.AllButFirst}, cfg.options())
}

func TestEverySetting(t *testing.T) {
	cfg, err := load(t, map[string]any{
		"timeline": "keep", "stall_threshold": "1s", "tpot_denominator": "after_first_chunk",
		"phases": true, "join": true, "roll_up": true,
		"fluidity": map[string]any{"time_to_first_token": "2s", "time_per_output_token": "50ms"},
	})
	require.NoError(t, err)
	require.Equal(t, &Config{
		Timeline: "keep", StallThreshold: time.Second, TPOTDenominator: "after_first_chunk",
		Phases: true, Join: true, RollUp: true,
		Fluidity: configoptional.Some(FluidityConfig{TimeToFirstToken: 2 * time.Second, TimePerOutputToken: 50 * time.Millisecond}),
	}, cfg)
	require.Equal(t, latency.Options{
		StallThreshold: time.Second, Denominator: latency.AfterFirstChunk,
		Fluidity: latency.Deadlines{FirstToken: 2 * time.Second, NextToken: 50 * time.Millisecond},
	}, cfg.options())
}

func TestInvalidConfig(t *testing.T) {
	tests := map[string]struct {
		settings map[string]any
		message  string
	}{
		"timeline misspelt": {
			map[string]any{"timeline": "Keep"}, `timeline is "Keep": choose "keep" or "drop"`,
		},
		"stall threshold without its unit": {
			map[string]any{"stall_threshold": 500}, "stall_threshold is 500ns: give at least 100µs, with its unit, such as 500ms",
		},
		"no stall threshold": {
			map[string]any{"stall_threshold": "0s"}, "stall_threshold is 0s: give at least 100µs, with its unit, such as 500ms",
		},
		"unknown denominator": {
			map[string]any{"tpot_denominator": "n-1"}, `tpot_denominator is "n-1": choose "standard" or "after_first_chunk"`,
		},
		"one deadline only": {
			map[string]any{"fluidity": map[string]any{"time_to_first_token": "2s"}},
			"fluidity: time_per_output_token is 0s: the fluidity index needs both deadlines, each from 100µs to 1h0m0s and with its unit; leave fluidity out to turn the index off",
		},
		"negative deadline": {
			map[string]any{"fluidity": map[string]any{"time_to_first_token": "-1s", "time_per_output_token": "1s"}},
			"fluidity: time_to_first_token is -1s",
		},
		"a deadline of a day": {
			map[string]any{"fluidity": map[string]any{"time_to_first_token": "24h", "time_per_output_token": "1s"}},
			"fluidity: time_to_first_token is 24h0m0s",
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

func TestEveryMistakeIsReported(t *testing.T) {
	_, err := load(t, map[string]any{"timeline": "x", "stall_threshold": "-1s", "tpot_denominator": "y"})
	require.ErrorContains(t, err, "timeline")
	require.ErrorContains(t, err, "stall_threshold")
	require.ErrorContains(t, err, "tpot_denominator")
}
