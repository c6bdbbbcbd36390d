// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadatatest"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
)

func TestConsumeTraces_SendsSeriesAtShutdown(t *testing.T) {
	telemetry, sink := componenttest.NewTelemetry(), &consumertest.MetricsSink{}
	c, err := newTracesToMetrics(metadatatest.NewSettings(telemetry), createDefaultConfig().(*Config), sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, c.ConsumeTraces(t.Context(), keepertest.Batch(keepertest.Request(nil))))
	require.NoError(t, c.Shutdown(t.Context()))
	require.Len(t, sink.AllMetrics(), 1)
	scope := sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0)
	require.Equal(t, "github.com/tokenpulse/tokenpulse/connector/tokensliconnector", scope.Scope().Name())
	require.Equal(t, "tokenpulse.requests", scope.Metrics().At(0).Name())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

func TestConsumeTraces_CountsRefusedFlushes(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	c, err := newTracesToMetrics(metadatatest.NewSettings(telemetry), createDefaultConfig().(*Config), consumertest.NewErr(errRefused))
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, c.ConsumeTraces(t.Context(), keepertest.Batch(keepertest.Request(nil))))
	require.NoError(t, c.Shutdown(t.Context()), "the Collector would exit with status 1")
	metadatatest.AssertEqualConnectorTokenSliFlushesRefused(t, telemetry, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}
