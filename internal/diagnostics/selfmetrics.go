// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Gauge returns the callback of a metric whose value is read when it is collected.
func Gauge(read func() int64, options ...metric.ObserveOption) metric.Int64Callback {
	return func(_ context.Context, observer metric.Int64Observer) error {
		observer.Observe(read(), options...)
		return nil
	}
}

// Label returns the only label of a measurement.
func Label(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}
