// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadatatest"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// blockedMetrics and blockedLogs block until released, whatever their context says, as
// exporters without a queue do while their backend hangs.
type (
	blockedMetrics struct {
		consumertest.MetricsSink
		release chan struct{}
	}
	blockedLogs struct {
		logDestination
		release chan struct{}
	}
)

func (d *blockedMetrics) ConsumeMetrics(context.Context, pmetric.Metrics) error {
	<-d.release
	return nil
}

func (d *blockedLogs) ConsumeLogs(context.Context, plog.Logs) error {
	<-d.release
	return nil
}

func TestShutdown_ReturnsWhileTheNextConsumerBlocks(t *testing.T) {
	id := storagetest.FileStorage
	config := createDefaultConfig().(*Config)
	config.Publish.FlushInterval = time.Hour
	config.Publish.Shared.StorageID = &id
	config.Publish.Shared.Objectives = []keeper.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}}
	for _, output := range []string{"metrics", "logs"} {
		t.Run(output, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock stands still while the connector computes
				host, telemetry, release := storagetest.NewHost(t), componenttest.NewTelemetry(), make(chan struct{})
				create := func() (connector.Traces, *keeper.Keeper) {
					if output == "metrics" {
						c, err := newTracesToMetrics(metadatatest.NewSettings(telemetry), config, &blockedMetrics{release: release})
						require.NoError(t, err)
						return c, c.Keeper
					}
					c, err := newTracesToLogs(metadatatest.NewSettings(telemetry), config, &blockedLogs{release: release})
					require.NoError(t, err)
					return c, c.keeper
				}
				c, k := create()
				require.NoError(t, c.Start(t.Context(), host))
				k.Record(t.Context(), breached(20)) // not ConsumeTraces, which would block on breach events

				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				require.NoError(t, c.Shutdown(ctx), "the Collector would exit with status 1")
				require.NoError(t, ctx.Err(), "the shutdown must end before its deadline")

				second, k := create()
				require.NoError(t, second.Start(t.Context(), host), "the storage is closed")
				bad := uint64(0)
				k.Tracker.Visit(time.Now(), func(b *slo.Budgets) { bad += b.Each[0].Recent.Budget.Bad })
				require.EqualValues(t, 20, bad)
				close(release)
				require.NoError(t, second.Shutdown(t.Context()))
				require.NoError(t, telemetry.Shutdown(t.Context()))
			})
		})
	}
}
