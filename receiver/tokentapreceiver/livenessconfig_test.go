// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func configOf(t *testing.T, keys map[string]any) *Config {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Upstream.Endpoint = "http://localhost:1"
	require.NoError(t, cfg.Unmarshal(confmap.NewFromStringMap(keys)))
	return cfg
}

func TestLivenessConfig_IsOnIfTheKeyIsThere(t *testing.T) {
	require.Nil(t, configOf(t, map[string]any{}).Liveness.Get())
	empty := configOf(t, map[string]any{"liveness": nil})
	require.NoError(t, empty.Validate())
	liveness := empty.Liveness.Get()
	require.NotNil(t, liveness)
	require.Equal(t, "localhost:4322", liveness.Server.NetAddr.Endpoint)
	require.InDelta(t, 0.5, liveness.MaxEjected, 0)
	require.Equal(t, 5*time.Second, liveness.Engines.Bound)

	liveness = configOf(t, map[string]any{"liveness": map[string]any{"endpoint": "localhost:9", "max_ejected": 0.25, "max_bound": "1m"}}).Liveness.Get()
	require.Equal(t, "localhost:9", liveness.Server.NetAddr.Endpoint)
	require.InDelta(t, 0.25, liveness.MaxEjected, 0)
	require.Equal(t, time.Minute, liveness.Engines.MaxBound)
	require.Equal(t, 5*time.Second, liveness.Engines.Bound)
}

func TestLivenessConfig_NamesMistakes(t *testing.T) {
	for message, keys := range map[string]map[string]any{
		"`liveness::max_ejected` is 2; use a number from 0 to 1":                             {"liveness": map[string]any{"max_ejected": 2}},
		"`liveness::max_ejected` is -0.1; use a number from 0 to 1":                          {"liveness": map[string]any{"max_ejected": -0.1}},
		"`liveness::max_ejected` is NaN; use a number from 0 to 1":                           {"liveness": map[string]any{"max_ejected": math.NaN()}},
		"`liveness::bound` is 1ms; use at least 1s, with a unit":                             {"liveness": map[string]any{"bound": "1ms"}},
		"`liveness::endpoint` is \"localhost:4321\", that of the receiver; use another port": {"liveness": map[string]any{"endpoint": "localhost:4321"}},
		"`storage` keeps nothing without `liveness`; add that, or remove `storage`":          {"storage": "file_storage"},
		"`liveness::max_bound` is 2s, less than `bound`; use at least 5s":                    {"liveness": map[string]any{"max_bound": "2s"}},
		"`liveness::factor` is 0.5; use a number from 1 to 100":                              {"liveness": map[string]any{"factor": 0.5}},
		"`liveness::max_engines` is 0; use at least 1":                                       {"liveness": map[string]any{"max_engines": 0}},
	} {
		require.EqualError(t, configOf(t, keys).Validate(), message)
	}
	require.NoError(t, configOf(t, map[string]any{"liveness": nil, "storage": "file_storage"}).Validate())
	ephemeral := map[string]any{"endpoint": "localhost:0", "liveness": map[string]any{"endpoint": "localhost:0"}}
	require.NoError(t, configOf(t, ephemeral).Validate())
}
