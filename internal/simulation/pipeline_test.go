// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// weather is how the pipeline treats batches.
type weather int

const (
	fair           weather = iota
	refusing               // temporarily, as memory_limiter does
	rejecting              // permanently
	holding                // until a later step
	backendRefuses         // the last consumer refuses what the others have accepted
)

func (w weather) String() string {
	return [...]string{"fair", "refusing", "rejecting", "holding", "refusing in the backend"}[w]
}

var (
	errRefused  = errors.New("refused: memory usage is high")
	errRejected = consumererror.NewPermanent(errors.New("rejected"))
)

// gate is the pipeline between the receiver and the processor.
type gate struct {
	process *process
	next    consumer.Traces
}

func (*gate) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (g *gate) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	if g.process.isDead() {
		return consumererror.NewPermanent(errDead)
	}
	w := g.process.world
	c := w.arrive(traces)
	err := g.consume(ctx, c, traces)
	if !g.process.isDead() {
		w.leave(c, err)
	}
	return err
}

func (g *gate) consume(ctx context.Context, c *call, traces ptrace.Traces) error {
	verdict := c.weather
	if verdict == holding {
		select {
		case verdict = <-c.release:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.process.dead:
			return consumererror.NewPermanent(errDead)
		}
	}
	c.weather = verdict
	switch verdict {
	case refusing:
		return errRefused
	case rejecting:
		return errRejected
	}
	g.process.world.present(c)
	return g.next.ConsumeTraces(context.WithValue(ctx, callKey{}, c), traces)
}

type callKey struct{}

// fanOut stands in for the Collector's fan-out, which other modules cannot import: it calls
// all consumers, whatever the others return. None of these changes the data.
func fanOut[Consumer, Data any](consume func(Consumer, context.Context, Data) error, all []Consumer) func(context.Context, Data) error {
	return func(ctx context.Context, data Data) error {
		var errs error
		for _, next := range all {
			errs = errors.Join(errs, consume(next, ctx, data))
		}
		return errs
	}
}

// backend is a trace backend beside token_sli.
type backend struct{ process *process }

func (*backend) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (b *backend) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	c := ctx.Value(callKey{}).(*call)
	if c.weather == backendRefuses {
		return errRefused
	}
	return b.process.world.stored(traces)
}

// sink is the consumer of the series, and of the connector's events.
type sink struct{ process *process }

func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	return s.take(func(w *world) { w.flushed(metrics) }, func(w *world) {
		if w.path != viaSpans {
			w.counters["flushes_refused"]++
		}
	})
}

func (s *sink) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	return s.take(func(w *world) { w.logged(logs) }, func(*world) {})
}

// take notes what the connector or the receiver sent, unless the consumer refuses it.
func (s *sink) take(note, refused func(*world)) error {
	if s.process.isDead() {
		return errDead
	}
	w := s.process.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sinks.refuse {
		refused(w)
		return errSink
	}
	note(w)
	return nil
}
