package tokensliconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// selfTelemetry is what the connector tells about itself.
type selfTelemetry struct {
	builder *metadata.TelemetryBuilder
	reasons [spanreader.Reasons]metric.MeasurementOption
}

func newSelfTelemetry(set component.TelemetrySettings, engine *series.Engine, maxSeries int) (*selfTelemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	t := &selfTelemetry{builder: builder}
	for reason, name := range spanreader.ReasonNames {
		t.reasons[reason] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	err = builder.RegisterConnectorTokenSliSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(engine.Held()))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, builder.RegisterConnectorTokenSliSeriesLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(maxSeries))
		return nil
	})
}

func (t *selfTelemetry) consumed(ctx context.Context, tally *spanreader.Tally) {
	t.builder.ConnectorTokenSliRequests.Add(ctx, tally.Requests)
	t.builder.ConnectorTokenSliRequestsOverflow.Add(ctx, tally.Overflow)
	t.builder.ConnectorTokenSliSpansIgnored.Add(ctx, tally.Ignored)
	t.builder.ConnectorTokenSliSloVerdictsDropped.Add(ctx, tally.DroppedVerdicts)
	for reason, n := range tally.Rejected {
		if n > 0 {
			t.builder.ConnectorTokenSliValuesRejected.Add(ctx, n, t.reasons[reason])
		}
	}
}

func (t *selfTelemetry) expired(series, budgets int) {
	t.builder.ConnectorTokenSliSeriesExpired.Add(context.Background(), int64(series))
	t.builder.ConnectorTokenSliBudgetsForgotten.Add(context.Background(), int64(budgets))
}

func (t *selfTelemetry) saveFailed() {
	t.builder.ConnectorTokenSliSavesFailed.Add(context.Background(), 1)
}

func (t *selfTelemetry) refused(ctx context.Context) {
	t.builder.ConnectorTokenSliFlushesRefused.Add(ctx, 1)
}

// lost counts events that nobody sends again.
func (t *selfTelemetry) lost(ctx context.Context, events int) {
	t.builder.ConnectorTokenSliEventsLost.Add(ctx, int64(events))
}

func (t *selfTelemetry) shutdown() { t.builder.Shutdown() }
