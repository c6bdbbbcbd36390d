// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

func TestHistory_SurvivesARestart(t *testing.T) {
	host := storagetest.NewHost(t)
	stored := func(c *Config) { c.Shared.StorageID = &storagetest.FileStorage }
	for run := 1; run <= 3; run++ {
		h := startOn(t, host, stored)
		for range 10 {
			h.send(t, everything())
		}
		now := answer(t, h, "now?range=1h", func(n *nowAnswer) bool { return n.total() == 10*run })
		require.InDelta(t, 10*run, now.Indicators["time_to_first_token"]["count"], 0)
		require.InDelta(t, 76*10*run, now.Tokens["output"], 0)
		require.NoError(t, h.exporter.Shutdown(t.Context()))
	}
	h := startOn(t, host, func(c *Config) { stored(c); c.Shared.Series.Dimensions = series.DimensionsOf("service.name") })
	now := answer(t, h, "now?range=1h", func(*nowAnswer) bool { return true })
	require.Zero(t, now.total(), "other dimensions: the saved series are others")
}
