// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadata"
)

// tally counts within one batch, so that each counter is updated once per batch.
type tally struct {
	foreign, untrusted int64
	derived, malformed []int64 // by reader
	ignored            diagnostics.Tally
	// Results of joining a client's or gateway's span with the engine's span below it.
	joined, ambiguous int64
	// Results of rolling up a trace with model calls.
	rolledUp, rootMissing int64
}

func newTally() tally {
	readers := len(source.Names())
	return tally{derived: make([]int64, readers), malformed: make([]int64, readers)}
}

func (t *tally) add(observed *source.Observation, derived *latency.Latency) {
	t.derived[observed.Reader]++
	t.ignored.Add(derived, observed.Unusable)
	t.ignored.AddRejected(&observed.Rejected)
}

func (t *tally) reset() {
	clear(t.derived)
	clear(t.malformed)
	*t = tally{derived: t.derived, malformed: t.malformed}
}

// telemetry adds tallies to the processor's own metrics.
type telemetry struct {
	builder   *metadata.TelemetryBuilder
	unclaimed unclaimed
	sources   []metric.AddOption // by reader
}

var (
	withJoined      = diagnostics.Label("result", "joined")
	withAmbiguous   = diagnostics.Label("result", "ambiguous")
	withRolledUp    = diagnostics.Label("result", "rolled_up")
	withRootMissing = diagnostics.Label("result", "root_missing")
)

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, unclaimed: unclaimed{counter: builder.ProcessorTokenLatencySpansUnclaimed}}
	for _, name := range source.Names() {
		t.sources = append(t.sources, diagnostics.Label("source", name))
	}
	return t, nil
}

// report adds a batch's tally to the metrics and resets it.
func (t *telemetry) report(ctx context.Context, batch *tally) {
	add(ctx, t.builder.ProcessorTokenLatencySpansForeign, batch.foreign)
	add(ctx, t.builder.ProcessorTokenLatencyAnnotationsRemoved, batch.untrusted)
	batch.ignored.Report(ctx, t.builder.ProcessorTokenLatencyClockAnomalies, t.builder.ProcessorTokenLatencyValuesRejected)
	for reader, option := range t.sources {
		add(ctx, t.builder.ProcessorTokenLatencySpansDerived, batch.derived[reader], option)
		add(ctx, t.builder.ProcessorTokenLatencySpansMalformed, batch.malformed[reader], option)
	}
	add(ctx, t.builder.ProcessorTokenLatencyJoins, batch.joined, withJoined)
	add(ctx, t.builder.ProcessorTokenLatencyJoins, batch.ambiguous, withAmbiguous)
	add(ctx, t.builder.ProcessorTokenLatencyRollUps, batch.rolledUp, withRolledUp)
	add(ctx, t.builder.ProcessorTokenLatencyRollUps, batch.rootMissing, withRootMissing)
	batch.reset()
}

func add(ctx context.Context, counter metric.Int64Counter, n int64, options ...metric.AddOption) {
	if n > 0 {
		counter.Add(ctx, n, options...)
	}
}
