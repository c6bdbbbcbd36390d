package tokenlatencyprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// tokenLatency annotates spans. It holds no state between batches.
type tokenLatency struct {
	dropTimeline bool
	sources      []string  // by reader
	workers      sync.Pool // of *worker
	telemetry    *telemetry
	logger       *zap.Logger
}

// worker is the memory that one batch needs.
type worker struct {
	observer source.Observer
	analyzer *latency.Analyzer
	encoded  []byte // scratch for one sketch
	tally    tally
}

func newTokenLatency(set component.TelemetrySettings, cfg *Config) (*tokenLatency, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	options := cfg.options()
	return &tokenLatency{
		dropTimeline: cfg.Timeline == timelineDrop,
		sources:      source.Names(),
		workers: sync.Pool{New: func() any {
			return &worker{analyzer: latency.NewAnalyzer(options), tally: newTally()}
		}},
		telemetry: telemetry,
		logger:    onceAMinute(set.Logger),
	}, nil
}

// onceAMinute logs each message at most once a minute: what is wrong with one
// span is mostly wrong with all spans of its sender.
func onceAMinute(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
}

func (p *tokenLatency) processTraces(ctx context.Context, traces ptrace.Traces) (ptrace.Traces, error) {
	w := p.workers.Get().(*worker)
	defer p.workers.Put(w)
	for _, resourceSpans := range traces.ResourceSpans().All() {
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			scope := scopeSpans.Scope().Name()
			for _, span := range scopeSpans.Spans().All() {
				p.processSpan(w, scope, span)
			}
		}
	}
	p.telemetry.report(ctx, &w.tally)
	return traces, nil
}

// processSpan writes the latency of a model call on its span. A span that tells
// of none, or that cannot be read, stays as it is.
func (p *tokenLatency) processSpan(w *worker, scope string, span ptrace.Span) {
	observed, err := w.observer.Observe(scope, span)
	if observed == nil {
		w.tally.foreign++
		return
	}
	var derived latency.Latency
	if err == nil {
		derived, err = w.analyzer.Analyze(observed.Request, observed.Timeline)
	}
	if err != nil {
		w.tally.malformed[observed.Reader]++
		p.logger.Warn("A span's token timings cannot be read; it passes without latency. "+
			"Check that what sent it, and every processor before this one, comes from the same release of tokenpulse "+
			"and leaves its attributes alone.",
			zap.Error(err), zap.Stringer("trace_id", span.TraceID()), zap.Stringer("span_id", span.SpanID()))
		return
	}
	w.tally.add(observed, &derived)
	p.annotate(w, span.Attributes(), observed, &derived)
}
