// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/internal/series/keeper/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// telemetry reports the self-metrics. Its attributes name the component: several
// components with the same metric would otherwise add up.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	owner   metric.MeasurementOption
	reasons [spanreader.Reasons]metric.MeasurementOption
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
	t := &telemetry{builder: builder, owner: with(owner)}
	for reason, name := range spanreader.ReasonNames {
		t.reasons[reason] = with(owner, attribute.String("reason", name))
	}
	return t, t.register(k, owner)
}

func with(owner []attribute.KeyValue, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, owner...)...))
}

func (t *telemetry) register(k *Keeper, owner []attribute.KeyValue) error {
	err := t.builder.RegisterTokenSliBudgetsEvictedCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(k.Tracker.Evicted(), t.owner)
		return nil
	})
	if err != nil {
		return err
	}
	err = t.builder.RegisterTokenSliDeduplicationEvictedCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(k.recorded.Evicted()+k.settings.Delivered.Evicted(), t.owner)
		return nil
	})
	if err != nil {
		return err
	}
	err = t.builder.RegisterTokenSliObjectivesUnseenCallback(func(_ context.Context, o metric.Int64Observer) error {
		objectives, _ := k.Tracker.Unseen(k.settings.Now())
		for _, slo := range objectives {
			o.Observe(1, with(owner, attribute.String("slo", slo)))
		}
		return nil
	})
	if err != nil || k.Engine == nil {
		return err
	}
	err = t.builder.RegisterTokenSliSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(k.Engine.Held()), t.owner)
		return nil
	})
	if err != nil {
		return err
	}
	return t.builder.RegisterTokenSliSeriesLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(k.settings.Config.Series.MaxSeries), t.owner)
		return nil
	})
}

func (t *telemetry) recorded(ctx context.Context, tally *spanreader.Tally) {
	t.builder.TokenSliRequests.Add(ctx, tally.Requests, t.owner)
	t.builder.TokenSliRequestsDuplicate.Add(ctx, tally.Duplicates, t.owner)
	t.builder.TokenSliRequestsOverflow.Add(ctx, tally.Overflow, t.owner)
	t.builder.TokenSliSpansIgnored.Add(ctx, tally.Ignored, t.owner)
	t.builder.TokenSliSloVerdictsDropped.Add(ctx, tally.DroppedVerdicts, t.owner)
	for reason, n := range tally.Rejected {
		if n > 0 {
			t.builder.TokenSliValuesRejected.Add(ctx, n, t.reasons[reason])
		}
	}
}

func (t *telemetry) expired(series int) {
	t.builder.TokenSliSeriesExpired.Add(context.Background(), int64(series), t.owner)
}

func (t *telemetry) saveFailed(ctx context.Context) {
	t.builder.TokenSliSavesFailed.Add(ctx, 1, t.owner)
}

func (t *telemetry) shutdown() { t.builder.Shutdown() }
