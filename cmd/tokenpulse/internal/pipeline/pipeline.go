// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package pipeline derives, judges and counts the requests of spans by the code of the Collector's components:
// the token_latency processor, and the series of token_sli.
package pipeline

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
)

// Settings of a Pipeline.
type Settings struct {
	// Latency configures token_latency.
	Latency *tokenlatencyprocessor.Config
	// SLI configures the series.
	SLI *keeper.Config
	// Rejudge removes the verdicts that spans already carry, so that the SLOs of Latency are the only ones.
	Rejudge bool
	// Logger receives what the components would log.
	Logger *zap.Logger
	// Watch is called with each request, its span and resource, after it was counted: the request is valid during
	// the call only. It may be nil.
	Watch func(r *series.Contribution, span ptrace.Span, resource pcommon.Map)
}

// Pipeline is a token_latency processor in front of the series of token_sli. It is not safe for concurrent use.
type Pipeline struct {
	// Engine holds the series.
	Engine *series.Engine
	// Tally counts the requests of all batches by result.
	Tally spanreader.Tally
	// Begin and End are those of the earliest and the latest request with known times, zero before the first.
	Begin, End time.Time

	rejudge   bool
	processor processor.Traces
	keeper    *keeper.Keeper
	whole     *wholeTraces // nil unless token_latency needs whole traces
}

// New returns a pipeline that has seen no span.
func New(ctx context.Context, set Settings) (*Pipeline, error) {
	telemetry := component.TelemetrySettings{
		Logger: set.Logger, MeterProvider: metricnoop.NewMeterProvider(), TracerProvider: tracenoop.NewTracerProvider(),
		Resource: pcommon.NewResource(),
	}
	started := time.Now()
	p := &Pipeline{Engine: series.NewEngine(set.SLI.EngineOptions()), rejudge: set.Rejudge}
	watch := func(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
		p.extend(span)
		if set.Watch != nil {
			set.Watch(r, span, resource)
		}
	}
	var err error
	p.keeper, err = keeper.New(keeper.Settings{
		Config: set.SLI, Telemetry: telemetry, Component: component.MustNewID("token_sli"), Kind: component.KindExporter, Output: "report",
		// A clock that stands still: the horizon of deduplication is for redeliveries, and a file may be longer.
		Engine: p.Engine, Watch: watch, Now: func() time.Time { return started },
		OpenStreams: func() []inprocess.VisitOpenStreams { return nil }, Engines: func() []liveness.Status { return nil },
	})
	if err != nil {
		return nil, err
	}
	factory := tokenlatencyprocessor.NewFactory()
	next, err := consumer.NewTraces(func(ctx context.Context, traces ptrace.Traces) error {
		tally := p.keeper.Record(ctx, traces)
		p.Tally.Merge(&tally)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.processor, err = factory.CreateTraces(ctx, processor.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: telemetry}, set.Latency, next)
	if err != nil {
		return nil, err
	}
	if set.Latency.Join || set.Latency.RollUp {
		p.whole = newWholeTraces(func(traces ptrace.Traces) error { return p.processor.ConsumeTraces(ctx, traces) })
	}
	return p, p.processor.Start(ctx, noHost{})
}

// Consume counts the requests of a batch, whose spans it changes and keeps. If token_latency needs whole traces, they
// count when their trace ends, at the latest with Close.
func (p *Pipeline) Consume(ctx context.Context, traces ptrace.Traces) error {
	if p.rejudge {
		removeVerdicts(traces)
	}
	if p.whole != nil {
		return p.whole.add(traces)
	}
	return p.processor.ConsumeTraces(ctx, traces)
}

// Flush counts the requests that wait for further spans of their traces.
func (p *Pipeline) Flush() error {
	if p.whole == nil {
		return nil
	}
	return p.whole.flush()
}

// Close counts the requests that wait, and ends the pipeline.
func (p *Pipeline) Close(ctx context.Context) error {
	return errors.Join(p.Flush(), p.processor.Shutdown(ctx))
}

// Forgotten returns the number of requests that were forgotten at the limit of deduplication, so that a repeated one
// counts again.
func (p *Pipeline) Forgotten() int64 { return p.keeper.Recognised().Evicted() }

// extend takes the times of a span, unless they are missing or beyond what time.Time has of pdata: one such span would make
// the whole time decades long, and each rate zero.
func (p *Pipeline) extend(span ptrace.Span) {
	if start, end := span.StartTimestamp(), span.EndTimestamp(); start == 0 || start > math.MaxInt64 || end < start || end > math.MaxInt64 {
		return
	}
	if begin := span.StartTimestamp().AsTime(); p.Begin.IsZero() || begin.Before(p.Begin) {
		p.Begin = begin
	}
	if end := span.EndTimestamp().AsTime(); end.After(p.End) {
		p.End = end
	}
}

// noHost is a host without extensions.
type noHost struct{}

func (noHost) GetExtensions() map[component.ID]component.Component { return nil }
