// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// metricValue returns the sum or gauge of one series, or zero.
func metricValue(t *testing.T, b *bench, name string, attributes map[string]string) int64 {
	t.Helper()
	metric, err := b.telemetry.GetMetric("otelcol_receiver_token_stream_" + name)
	if err != nil {
		return 0
	}
	var points []metricdata.DataPoint[int64]
	switch data := metric.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	for _, point := range points {
		matches := point.Attributes.Len() == len(attributes)
		for key, value := range attributes {
			got, _ := point.Attributes.Value(attribute.Key(key))
			matches = matches && got.AsString() == value
		}
		if matches {
			return point.Value
		}
	}
	return 0
}
