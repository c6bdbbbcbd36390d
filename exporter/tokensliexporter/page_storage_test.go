// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// startStored starts an exporter whose storage a test keeps.
func startStored(t *testing.T, host component.Host, dimensions ...string) (h *harness, stop func()) {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = freeAddress(t)
	config.Shared.StorageID = &storagetest.FileStorage
	if dimensions != nil {
		config.Shared.Series.Dimensions = series.DimensionsOf(dimensions...)
	}
	e, err := createTraces(t.Context(), newSettings(componenttest.NewTelemetry()), config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host))
	return &harness{exporter: e, url: "http://" + config.Server.NetAddr.Endpoint}, func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, e.Shutdown(context.Background()))
	}
}

func TestHistory_SurvivesARestart(t *testing.T) {
	host := storagetest.NewHost(t)
	for run := 1; run <= 3; run++ {
		h, stop := startStored(t, host)
		for range 10 {
			require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(everything())))
		}
		now := answer(t, h, "now?range=1h", func(n *nowAnswer) bool { return n.total() == 10*run })
		require.InDelta(t, 10*run, now.Indicators["time_to_first_token"]["count"], 0)
		require.InDelta(t, 76*10*run, now.Tokens["output"], 0)
		stop()
	}
	h, stop := startStored(t, host, "service.name")
	defer stop()
	now := answer(t, h, "now?range=1h", func(*nowAnswer) bool { return true })
	require.Zero(t, now.total(), "other dimensions: the saved series are others")
}
