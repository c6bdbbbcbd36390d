// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/keeper/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/metricreader"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// telemetry reports the self-metrics. Its attributes name the component: several
// components with the same metric would otherwise add up.
type telemetry struct {
	*metadata.TelemetryBuilder
	owner   metric.MeasurementOption
	reasons [series.Reasons]metric.MeasurementOption
	ignored [metricreader.Reasons]metric.MeasurementOption
}

func newTelemetry(k *Keeper) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(k.settings.Telemetry)
	if err != nil {
		return nil, err
	}
	owner := []attribute.KeyValue{
		attribute.String("component", strings.ToLower(k.settings.Kind.String())+"/"+k.settings.Component.String()),
		attribute.String("output", k.settings.Output),
	}
	t := &telemetry{TelemetryBuilder: builder, owner: with(owner)}
	for reason, name := range series.ReasonNames {
		t.reasons[reason] = with(owner, attribute.String("reason", name))
	}
	for reason, name := range metricreader.ReasonNames {
		t.ignored[reason] = with(owner, attribute.String("reason", name))
	}
	return t, t.register(k, owner)
}

func with(owner []attribute.KeyValue, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, owner...)...))
}

func (t *telemetry) register(k *Keeper, owner []attribute.KeyValue) error {
	gauge := func(read func() int64) metric.Int64Callback { return diagnostics.Gauge(read, t.owner) }
	err := errors.Join(
		t.RegisterTokenSliBudgetsEvictedCallback(gauge(k.Tracker.Evicted)),
		t.RegisterTokenSliDeduplicationEvictedCallback(gauge(func() int64 {
			return k.recorded.Evicted() + k.settings.Delivered.Evicted()
		})),
		t.RegisterTokenSliObjectivesUnseenCallback(func(_ context.Context, o metric.Int64Observer) error {
			unjudged, facts := k.unjudged()
			if !diagnostics.ObjectiveUnseen.SeenIn(facts) {
				return nil
			}
			for _, slo := range unjudged.SLOs {
				o.Observe(1, with(owner, attribute.String("slo", slo)))
			}
			return nil
		}),
	)
	if k.Engine == nil {
		return err
	}
	if k.points != nil {
		err = errors.Join(err,
			t.RegisterTokenSliPointStreamsCallback(gauge(func() int64 { return int64(k.points.Held()) })),
			t.RegisterTokenSliPointStreamsLimitCallback(gauge(func() int64 { return int64(maxStreams(k.settings.Config)) })),
		)
	}
	if standard := k.Engine.Standard; standard != nil {
		err = errors.Join(err,
			t.RegisterTokenSliConventionsSeriesCallback(gauge(func() int64 { return int64(standard.Held()) })),
			t.RegisterTokenSliConventionsOverflowCallback(gauge(standard.Overflow)),
		)
	}
	return errors.Join(err,
		t.RegisterTokenSliSeriesCallback(gauge(func() int64 { return int64(k.Engine.Held()) })),
		t.RegisterTokenSliSeriesLimitCallback(gauge(func() int64 { return int64(k.settings.Config.Series.MaxSeries) })),
	)
}

func (t *telemetry) recorded(ctx context.Context, tally *spanreader.Tally) {
	t.TokenSliRequests.Add(ctx, tally.Requests, t.owner)
	t.TokenSliTraces.Add(ctx, tally.Traces, t.owner)
	t.TokenSliRequestsAggregated.Add(ctx, tally.Aggregated, t.owner)
	t.TokenSliRequestsDuplicate.Add(ctx, tally.Duplicates, t.owner)
	t.TokenSliRequestsOverflow.Add(ctx, tally.Overflow, t.owner)
	t.TokenSliSpansIgnored.Add(ctx, tally.Ignored, t.owner)
	t.TokenSliSloVerdictsDropped.Add(ctx, tally.DroppedVerdicts, t.owner)
	for reason, n := range tally.Rejected {
		if n > 0 {
			t.TokenSliValuesRejected.Add(ctx, n, t.reasons[reason])
		}
	}
}

func (t *telemetry) read(ctx context.Context, tally *metricreader.Tally) {
	t.TokenSliPoints.Add(ctx, tally.Points, t.owner)
	t.TokenSliRequestsOverflow.Add(ctx, tally.Overflow, t.owner)
	t.TokenSliSloVerdictsDropped.Add(ctx, tally.DroppedVerdicts, t.owner)
	for reason, n := range tally.Ignored {
		if n > 0 {
			t.TokenSliPointsIgnored.Add(ctx, n, t.ignored[reason])
		}
	}
}
