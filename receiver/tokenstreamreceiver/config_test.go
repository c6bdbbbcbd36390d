// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func load(t *testing.T, settings map[string]any) (*Config, error) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(cfg))
	return cfg, confmap.Validate(cfg)
}

func TestConfig_Defaults(t *testing.T) {
	for name, settings := range map[string]map[string]any{
		"no section":           {},
		"empty protocols":      {"protocols": nil},
		"both protocols empty": {"protocols": map[string]any{"http": nil, "grpc": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, settings)
			require.NoError(t, err)
			require.Equal(t, "localhost:4319", cfg.Protocols.HTTP.Get().NetAddr.Endpoint)
			require.Equal(t, "localhost:4320", cfg.Protocols.GRPC.Get().NetAddr.Endpoint)
			require.Equal(t, time.Minute, cfg.IdleTimeout)
			require.Equal(t, 10*time.Minute, cfg.FirstTokenTimeout)
			require.Equal(t, 100_000, cfg.MaxStreams)
			require.Equal(t, 10_000, cfg.limits().MaxStreamsPerClient)
			require.Equal(t, 1_000_000, cfg.MaxChunksPerStream)
			require.Equal(t, 65_536, cfg.MaxEventBytes)
			require.Equal(t, defaultMemoryMiB(), cfg.MaxMemoryMiB)
			require.Equal(t, 10_000, cfg.MaxLiveRequests)
		})
	}
}

func TestConfig_AllSettings(t *testing.T) {
	cfg, err := load(t, map[string]any{
		"protocols":    map[string]any{"http": map[string]any{"endpoint": "localhost:9999"}, "grpc": map[string]any{"enabled": false}},
		"idle_timeout": "5s", "first_token_timeout": "7s", "max_streams": 50, "max_share_per_client": 0.8, "max_memory_mib": 3,
	})
	require.NoError(t, err)
	require.Equal(t, "localhost:9999", cfg.Protocols.HTTP.Get().NetAddr.Endpoint)
	require.Nil(t, cfg.Protocols.GRPC.Get())
	require.Equal(t, 5*time.Second, cfg.IdleTimeout)
	require.Equal(t, 7*time.Second, cfg.FirstTokenTimeout)
	require.Equal(t, 40, cfg.limits().MaxStreamsPerClient)
	require.EqualValues(t, 3<<20, cfg.limits().MaxMemory)
}

func TestConfig_FirstTokenTimeout(t *testing.T) {
	for name, tt := range map[string]struct {
		settings map[string]any
		want     time.Duration
	}{
		"by default at least idle_timeout": {map[string]any{"idle_timeout": "1h"}, time.Hour},
		"a set one may be shorter":         {map[string]any{"first_token_timeout": "2s"}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, tt.settings)
			require.NoError(t, err)
			require.Equal(t, tt.want, cfg.timeouts().FirstToken)
		})
	}
}

func TestConfig_MaxSharePerClientIsAtLeastOne(t *testing.T) {
	cfg, err := load(t, map[string]any{"max_streams": 5})
	require.NoError(t, err)
	require.Equal(t, 1, cfg.limits().MaxStreamsPerClient)
}

// Former names of the share.
func TestConfig_ErrorOfAnotherLimitPerClientNamesTheShare(t *testing.T) {
	for want, settings := range map[string]map[string]any{
		"unknown key \"max_streams_per_client\"; use `max_share_per_client`; valid keys: ":            {"max_streams_per_client": 5},
		"unknown key \"max_live_requests_per_client\"; use `max_share_per_client`; valid keys: ":      {"max_live_requests_per_client": 5},
		"unknown key \"max_series_per_client\" in `series`; use `max_share_per_client`; valid keys: ": {"series": map[string]any{"max_series_per_client": 5}},
	} {
		require.ErrorContains(t, confmap.NewFromStringMap(settings).Unmarshal(createDefaultConfig()), want)
	}
}

func TestConfig_OneProtocolDisablesTheOther(t *testing.T) {
	cfg, err := load(t, map[string]any{"protocols": map[string]any{"http": nil}})
	require.NoError(t, err)
	require.Equal(t, "localhost:4319", cfg.Protocols.HTTP.Get().NetAddr.Endpoint)
	require.Nil(t, cfg.Protocols.GRPC.Get())

	cfg, err = load(t, map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": "localhost:9999"}}})
	require.NoError(t, err)
	require.Equal(t, "localhost:9999", cfg.Protocols.GRPC.Get().NetAddr.Endpoint)
	require.Nil(t, cfg.Protocols.HTTP.Get())
}

func TestConfig_RejectsUnknownProtocol(t *testing.T) {
	settings := map[string]any{"protocols": map[string]any{"https": nil}}
	require.ErrorContains(t, confmap.NewFromStringMap(settings).Unmarshal(createDefaultConfig()), "https")
}

func TestConfig_RejectsInvalidSettings(t *testing.T) {
	off := map[string]any{"enabled": false}
	for want, settings := range map[string]map[string]any{
		"`protocols` has neither http nor grpc enabled; enable at least one":                                  {"protocols": map[string]any{"http": off, "grpc": off}},
		"`idle_timeout` is -1s; use at least 1ms, with a unit, such as 60s":                                   {"idle_timeout": "-1s"},
		"`idle_timeout` is 60ns; use at least 1ms, with a unit, such as 60s":                                  {"idle_timeout": 60},
		"`first_token_timeout` is 600ns; use at least 1ms, with a unit, such as 10m":                          {"first_token_timeout": 600},
		"`max_share_per_client` is 0; use a fraction above 0, such as 0.1, or 1 to let one client hold all":   {"max_share_per_client": 0},
		"`max_share_per_client` is 40; use a fraction above 0, such as 0.1, or 1 to let one client hold all":  {"max_share_per_client": 40},
		"`max_streams` is 0; use at least 1":                                                                  {"max_streams": 0},
		"`max_chunks_per_stream` is -4; use at least 1":                                                       {"max_chunks_per_stream": -4},
		"`max_event_bytes` is 10; use at least 1024":                                                          {"max_event_bytes": 10},
		"`max_memory_mib` is 0; use at least 1":                                                               {"max_memory_mib": 0},
		"`max_live_requests` is 0; use at least 1":                                                            {"max_live_requests": 0},
		"compression_algorithms` has \"snappy\", which is decompressed outside of `max_memory_mib`; use gzip": {"protocols": map[string]any{"http": map[string]any{"compression_algorithms": []string{"gzip", "snappy"}}}},
		"compression_algorithms` has \"lz4\", which is decompressed":                                          {"protocols": map[string]any{"http": map[string]any{"compression_algorithms": []string{"lz4"}}}},
		"compression_algorithms` has \"x-snappy-framed\", which is decompressed":                              {"protocols": map[string]any{"http": map[string]any{"compression_algorithms": []string{"x-snappy-framed"}}}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := load(t, settings)
			require.ErrorContains(t, err, want)
		})
	}
}
