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
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
)

// newTelemetry reports the self-metrics of comparisons and, unless they are nil, of capacities and of the live page.
func newTelemetry(set exporter.Settings, compared *comparisons, learned *capacities, l *live) (*metadata.TelemetryBuilder, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	component := attribute.String("component", "exporter/"+set.ID.String())
	owner := metric.WithAttributes(component)
	gauge := func(read func() int64) metric.Int64Callback { return diagnostics.Gauge(read, owner) }
	err = builder.RegisterTokenSliComparisonsFoldedCallback(gauge(compared.Folded))
	if learned != nil {
		err = errors.Join(err, builder.RegisterTokenSliCapacityDroppedCallback(func(_ context.Context, o metric.Int64Observer) error {
			dropped := learned.Dropped()
			for reason, n := range map[string]int64{"late": dropped.Late, "unnamed": dropped.Unnamed, "series": dropped.Series, "replicas": dropped.Replicas} {
				o.Observe(n, metric.WithAttributes(component, attribute.String("reason", reason)))
			}
			return nil
		}))
	}
	if l == nil {
		return builder, err
	}
	return builder, errors.Join(err,
		builder.RegisterTokenSliHistoryCoarseningCallback(gauge(func() int64 { return int64(l.history.Coarsening()) })),
		builder.RegisterTokenSliHistoryMemoryCallback(gauge(func() int64 { used, _ := l.history.Memory(); return int64(used) })),
		builder.RegisterTokenSliHistoryMemoryLimitCallback(gauge(func() int64 { _, limit := l.history.Memory(); return int64(limit) })),
		builder.RegisterTokenSliPageClientsCallback(gauge(l.page.Clients)),
		builder.RegisterTokenSliPageRefusedCallback(func(_ context.Context, o metric.Int64Observer) error {
			l.page.Refused(func(limit string, n int64) {
				o.Observe(n, metric.WithAttributes(component, attribute.String("limit", limit)))
			})
			return nil
		}),
		builder.RegisterTokenSliTimelinesDroppedCallback(gauge(l.slowest.TimelinesDropped)),
	)
}
