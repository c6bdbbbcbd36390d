// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// destination accepts metrics, or refuses them if refuses is set.
type destination struct {
	consumertest.MetricsSink
	refuses bool
}

var errRefused = errors.New("refused")

func (d *destination) ConsumeMetrics(ctx context.Context, m pmetric.Metrics) error {
	if d.refuses {
		return errRefused
	}
	return d.MetricsSink.ConsumeMetrics(ctx, m)
}

// harness is a publisher. The test sets its clock and flushes.
type harness struct {
	*Publisher
	to        *destination
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	seconds   float64
	now       func() time.Time
}

// at returns the time of a clock in seconds.
func at(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }

// newHarness returns a publisher whose clock is at 100 seconds. It is not started.
func newHarness(t testing.TB, change func(*Config)) *harness {
	t.Helper()
	config := NewDefaultConfig()
	config.Shared.Series.Dimensions = series.DimensionsOf("service.name", "gen_ai.request.model")
	if change != nil {
		change(&config)
	}
	h := &harness{to: &destination{}, telemetry: componenttest.NewTelemetry(), seconds: 100, now: time.Now}
	set := h.telemetry.NewTelemetrySettings()
	core, logs := observer.New(zapcore.WarnLevel)
	set.Logger, h.logs = zap.New(core), logs
	h.Publisher = newPublisher(t, &config, set, h.to, func() time.Time { return h.now() })
	h.now = func() time.Time { return at(h.seconds) } // the error budgets began with the real clock
	h.since = pcommon.NewTimestampFromTime(h.now())
	t.Cleanup(func() {
		h.Keeper.Shutdown(context.Background())
		require.NoError(t, h.telemetry.Shutdown(context.Background()))
	})
	return h
}

// newPublisher returns a publisher that counts refused batches as otelcol_refused.
func newPublisher(t testing.TB, config *Config, telemetry component.TelemetrySettings, next consumer.Metrics, now func() time.Time) *Publisher {
	t.Helper()
	refused, err := telemetry.MeterProvider.Meter("test").Int64Counter("otelcol_refused")
	require.NoError(t, err)
	p, err := New(Settings{
		Config: config, Telemetry: telemetry, Component: component.MustNewID("token_sli"), Kind: component.KindConnector,
		Scope: "scope", Next: next, Refused: refused, Now: now,
	})
	require.NoError(t, err)
	return p
}

// everyMetric switches all metrics on that the connector has.
func everyMetric() map[string]keeper.Metric {
	all := map[string]keeper.Metric{}
	for _, name := range series.MetricNames() {
		if !strings.HasSuffix(name, ".percentile") {
			all[name] = keeper.Metric{Enabled: true}
		}
	}
	return all
}

func delta(c *Config) { c.Temporality = Delta }

// consume records spans at a time.
func (h *harness) consume(t testing.TB, seconds float64, spans ...map[string]any) {
	t.Helper()
	h.seconds = seconds
	h.Keeper.Record(t.Context(), keepertest.Batch(spans...))
}

// flushed flushes at a time and returns one line for each data point.
func (h *harness) flushed(t testing.TB, seconds float64) []string {
	t.Helper()
	h.seconds = seconds
	h.to.Reset()
	require.NoError(t, h.flush(t.Context()))
	if len(h.to.AllMetrics()) == 0 {
		return nil
	}
	require.Len(t, h.to.AllMetrics(), 1)
	return lines(h.to.AllMetrics()[0])
}

func encoded(values ...float64) []byte {
	var s sketch.Sketch
	for _, v := range values {
		s.Add(v, 1)
	}
	return s.AppendBinary(nil)
}

// lines returns the data points of a batch, sorted, each as name, attributes, start, time
// and value.
func lines(metrics pmetric.Metrics) (all []string) {
	each(metrics, func(_ pmetric.Metric, p point) { all = append(all, p.String()) })
	slices.Sort(all)
	return all
}

// point is the part of a data point that tests compare.
type point struct {
	name, attributes string
	start, time      pcommon.Timestamp
	value            string
}

func (p point) String() string {
	return fmt.Sprintf("%s{%s} %s..%s %s", p.name, p.attributes, seconds(p.start), seconds(p.time), p.value)
}

func seconds(t pcommon.Timestamp) string { return fmt.Sprint(float64(t) / 1e9) }

// each calls visit with every data point.
func each(metrics pmetric.Metrics, visit func(pmetric.Metric, point)) {
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				for _, p := range numberPoints(m).All() {
					v := strconv.FormatInt(p.IntValue(), 10)
					if p.ValueType() == pmetric.NumberDataPointValueTypeDouble {
						v = fmt.Sprintf("%gs", p.DoubleValue())
					}
					if p.Exemplars().Len() == 1 { // sums have one at most
						e := p.Exemplars().At(0)
						v += fmt.Sprintf(" exemplar=%d@%s %s", e.IntValue(), seconds(e.Timestamp()), e.TraceID())
					}
					visit(m, point{m.Name(), show(p.Attributes()), p.StartTimestamp(), p.Timestamp(), v})
				}
				if m.Type() == pmetric.MetricTypeHistogram {
					for _, p := range m.Histogram().DataPoints().All() {
						visit(m, point{m.Name(), show(p.Attributes()), p.StartTimestamp(), p.Timestamp(), showBuckets(p)})
					}
				}
				if m.Type() == pmetric.MetricTypeExponentialHistogram {
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						visit(m, point{m.Name(), show(p.Attributes()), p.StartTimestamp(), p.Timestamp(), showHistogram(p)})
					}
				}
			}
		}
	}
}

func numberPoints(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	default:
		return pmetric.NewNumberDataPointSlice()
	}
}

// show returns the attributes in the order of their keys.
func show(attributes pcommon.Map) string {
	var all []string
	for key, v := range attributes.All() {
		all = append(all, key+"="+v.AsString())
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// showHistogram returns count, sum, min and max, zeros, and each bucket that is not empty
// as index and count.
func showHistogram(p pmetric.ExponentialHistogramDataPoint) string {
	all := []string{fmt.Sprintf("n=%d sum=%g", p.Count(), p.Sum())}
	if p.HasMin() {
		all = append(all, fmt.Sprintf("%g..%g", p.Min(), p.Max()))
	}
	if p.ZeroCount() > 0 {
		all = append(all, fmt.Sprintf("zeros=%d", p.ZeroCount()))
	}
	for i, n := range p.Positive().BucketCounts().All() {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d:%d", int(p.Positive().Offset())+i, n))
		}
	}
	for _, e := range p.Exemplars().All() {
		all = append(all, fmt.Sprintf("exemplar=%g@%s", e.DoubleValue(), seconds(e.Timestamp())))
	}
	return strings.Join(all, " ")
}

// showBuckets returns count, sum, min and max, and each bucket that is not empty as upper bound and count.
func showBuckets(p pmetric.HistogramDataPoint) string {
	all := []string{fmt.Sprintf("n=%d sum=%g", p.Count(), p.Sum())}
	if p.HasMin() {
		all = append(all, fmt.Sprintf("%g..%g", p.Min(), p.Max()))
	}
	for i, n := range p.BucketCounts().All() {
		switch {
		case n == 0:
		case i < p.ExplicitBounds().Len():
			all = append(all, fmt.Sprintf("%g:%d", p.ExplicitBounds().At(i), n))
		default:
			all = append(all, fmt.Sprintf("inf:%d", n))
		}
	}
	for _, e := range p.Exemplars().All() {
		all = append(all, fmt.Sprintf("exemplar=%g@%s", e.DoubleValue(), seconds(e.Timestamp())))
	}
	return strings.Join(all, " ")
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
