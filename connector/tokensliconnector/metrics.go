// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/publish"
)

// tracesToMetrics publishes the series of the spans that it receives.
type tracesToMetrics struct {
	*publish.Publisher
	telemetry *metadata.TelemetryBuilder
}

func newTracesToMetrics(set connector.Settings, config *Config, next consumer.Metrics) (*tracesToMetrics, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	publisher, err := publish.New(publish.Settings{
		Config:    &config.Publish,
		Telemetry: set.TelemetrySettings,
		Component: set.ID,
		Kind:      component.KindConnector,
		Scope:     metadata.ScopeName,
		Next:      next,
		Refused:   telemetry.ConnectorTokenSliFlushesRefused,
		Now:       time.Now,
	})
	return &tracesToMetrics{publisher, telemetry}, err
}

// Capabilities returns that spans are not modified.
func (*tracesToMetrics) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces adds spans to their series. It never fails.
func (m *tracesToMetrics) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	m.Keeper.Record(ctx, traces)
	return nil
}

// Shutdown flushes a last time. It never fails.
func (m *tracesToMetrics) Shutdown(ctx context.Context) error {
	m.Keeper.Shutdown(ctx)
	m.telemetry.Shutdown()
	return nil
}
