// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
)

// newTelemetry reports the self-metrics of the live page.
func (l *live) newTelemetry(set exporter.Settings) (*metadata.TelemetryBuilder, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	owner := metric.WithAttributes(attribute.String("component", "exporter/"+set.ID.String()))
	observe := func(read func() int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(read(), owner)
			return nil
		}
	}
	return builder, errors.Join(
		builder.RegisterTokenSliHistoryCoarseningCallback(observe(func() int64 { return int64(l.history.Coarsening()) })),
		builder.RegisterTokenSliHistoryMemoryCallback(observe(func() int64 { used, _ := l.history.Memory(); return int64(used) })),
		builder.RegisterTokenSliHistoryMemoryLimitCallback(observe(func() int64 { _, limit := l.history.Memory(); return int64(limit) })),
		builder.RegisterTokenSliPageClientsCallback(observe(l.page.Clients)),
		builder.RegisterTokenSliPageRefusedCallback(observe(l.page.Refused)),
		builder.RegisterTokenSliTimelinesDroppedCallback(observe(l.slowest.TimelinesDropped)),
	)
}
