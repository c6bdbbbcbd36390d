// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Tally counts the clock anomalies and the rejected values of the requests in one batch, so that each
// counter is updated once per batch.
type Tally struct {
	ClockAnomalies int64
	Rejected       [latency.NumReasons]int64
	Unusable       int64
}

// Add counts a request. unusable is the number of its attributes whose value has the wrong type or form.
func (t *Tally) Add(derived *latency.Latency, unusable int64) {
	t.ClockAnomalies += derived.Count(numbers.ClockAnomalies)
	t.Unusable += unusable
	t.AddRejected(&derived.Rejected)
}

// AddRejected counts values that were rejected, by reason.
func (t *Tally) AddRejected(rejected *[latency.NumReasons]int64) {
	for reason, n := range rejected {
		t.Rejected[reason] += n
	}
}

var (
	withUnusable = Label("reason", "unusable")
	withReasons  = func() (options [latency.NumReasons]metric.AddOption) {
		for reason := range latency.NumReasons {
			options[reason] = Label("reason", reason.String())
		}
		return options
	}()
)

// Report adds the counts to a component's own metrics, and resets them.
func (t *Tally) Report(ctx context.Context, clockAnomalies, valuesRejected metric.Int64Counter) {
	if t.ClockAnomalies > 0 {
		clockAnomalies.Add(ctx, t.ClockAnomalies)
	}
	for reason, n := range t.Rejected {
		if n > 0 {
			valuesRejected.Add(ctx, n, withReasons[reason])
		}
	}
	if t.Unusable > 0 {
		valuesRejected.Add(ctx, t.Unusable, withUnusable)
	}
	*t = Tally{}
}
