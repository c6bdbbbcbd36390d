// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inprocess_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector"
	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver"
)

// Tools that document or validate configurations create default ones in any number.
func TestDefaultConfigs_RegisterNothing(t *testing.T) {
	for _, factory := range []component.Factory{
		tokenstreamreceiver.NewFactory(), tokentapreceiver.NewFactory(), tokenlatencyprocessor.NewFactory(),
		tokensliexporter.NewFactory(), tokensliconnector.NewFactory(),
	} {
		t.Run(factory.Type().String(), func(t *testing.T) {
			for range 1000 {
				require.NotNil(t, factory.CreateDefaultConfig())
			}
			core, logs := observer.New(zap.DebugLevel)
			inprocess.ReportIdleExporters(zap.New(core))
			require.Zero(t, logs.Len())
			require.Empty(t, inprocess.IdleExporters.All())
			require.Empty(t, inprocess.OpenStreams.All())
			require.Empty(t, inprocess.Endpoints.All())
			require.Empty(t, inprocess.SLOs.All())
			require.Empty(t, inprocess.Engines.All())
			require.Empty(t, inprocess.Doubts.All())
		})
	}
}
