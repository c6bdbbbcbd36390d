// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package keepertest makes annotated spans for the tests of components, and reads the self-metrics
// of package keeper.
package keepertest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Value returns the sum of a metric's data points. name lacks the prefix `otelcol_`.
func Value(t testing.TB, telemetry *componenttest.Telemetry, name string) (total int64) {
	t.Helper()
	for _, point := range points(t, telemetry, name) {
		total += point.Value
	}
	return total
}

// Values returns the sums of a metric's data points by the value of an attribute.
func Values(t testing.TB, telemetry *componenttest.Telemetry, name string, by attribute.Key) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, point := range points(t, telemetry, name) {
		value, ok := point.Attributes.Value(by)
		require.True(t, ok, "%s has no attribute %s", name, by)
		all[value.AsString()] += point.Value
	}
	return all
}

func points(t testing.TB, telemetry *componenttest.Telemetry, name string) []metricdata.DataPoint[int64] {
	t.Helper()
	metric, err := telemetry.GetMetric("otelcol_" + name)
	require.NoError(t, err)
	switch data := metric.Data.(type) {
	case metricdata.Sum[int64]:
		return data.DataPoints
	case metricdata.Gauge[int64]:
		return data.DataPoints
	default:
		require.Failf(t, "unexpected type", "%s is a %T", name, data)
		return nil
	}
}
