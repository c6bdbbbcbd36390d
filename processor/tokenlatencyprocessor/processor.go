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
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// tokenLatency annotates spans. It holds no state between batches.
type tokenLatency struct {
	dropTimeline bool
	phases       bool
	join, rollUp bool
	slos         []slo
	sources      []string  // by reader
	workers      sync.Pool // of *worker
	telemetry    *telemetry
	logger       *zap.Logger
}

// worker is the memory that one batch needs.
type worker struct {
	observer source.Observer
	analyzer *latency.Analyzer
	derived  latency.Latency // of the span read last
	encoded  []byte          // scratch for one sketch
	tree     tree
	tally    tally
}

func newTokenLatency(set component.TelemetrySettings, cfg *Config) (*tokenLatency, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	slos, err := newSLOs(cfg.SLOs)
	if err != nil {
		return nil, err
	}
	options := cfg.options()
	return &tokenLatency{
		dropTimeline: cfg.Timeline == timelineDrop,
		phases:       cfg.Phases,
		join:         cfg.Join,
		rollUp:       cfg.RollUp,
		slos:         slos,
		sources:      source.Names(),
		workers: sync.Pool{New: func() any {
			return &worker{analyzer: latency.NewAnalyzer(options), tally: newTally()}
		}},
		telemetry: telemetry,
		logger:    onceAMinute(set.Logger),
	}, nil
}

func (p *tokenLatency) shutdown(context.Context) error {
	return nil
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
		p.processResource(w, resourceSpans.ScopeSpans())
	}
	if p.join || p.rollUp {
		p.processTree(w, traces)
	}
	if len(p.slos) > 0 {
		judge(traces, p.slos)
	}
	p.telemetry.report(ctx, &w.tally)
	return traces, nil
}

func (p *tokenLatency) processResource(w *worker, scopes ptrace.ScopeSpansSlice) {
	phases := phaseSpans{scopes: scopes}
	for i := range scopes.Len() { // phases add one, which is not to be read
		scope := scopes.At(i).Scope().Name()
		for _, span := range scopes.At(i).Spans().All() {
			withPhases := p.phases && !isAnnotated(span) // which has them already
			if derived := p.processSpan(w, scope, span); withPhases && derived != nil {
				phases.addTo(span, derived)
			}
		}
	}
}

// isAnnotated reports that this processor, or one before it, wrote on the span: it
// is a model call that carries its latency.
func isAnnotated(span ptrace.Span) bool {
	_, annotated := span.Attributes().Get(names.Source)
	return annotated
}

// processTree does what takes a whole trace.
func (p *tokenLatency) processTree(w *worker, traces ptrace.Traces) {
	w.tree.grow(traces)
	defer w.tree.cut()
	if p.join {
		w.tree.join(&w.tally)
	}
	if p.rollUp {
		w.tree.rollUp(&w.tally)
	}
}

// processSpan writes the latency of a model call on its span, and returns it. A
// span that tells of none, or that cannot be read, stays as it is.
func (p *tokenLatency) processSpan(w *worker, scope string, span ptrace.Span) *latency.Latency {
	observed, err := w.observer.Observe(scope, span)
	if observed == nil {
		w.tally.foreign++
		return nil
	}
	if err == nil {
		w.derived, err = w.analyzer.Analyze(observed.Request, observed.Timeline)
	}
	if err != nil {
		w.tally.malformed[observed.Reader]++
		p.logger.Warn("A span's token timings cannot be read; it passes without latency. "+
			"Check that what sent it, and every processor before this one, comes from the same release of tokenpulse "+
			"and leaves its attributes alone.",
			zap.Error(err), zap.Stringer("trace_id", span.TraceID()), zap.Stringer("span_id", span.SpanID()))
		return nil
	}
	w.tally.add(observed, &w.derived)
	p.annotate(w, span.Attributes(), observed, &w.derived)
	return &w.derived
}
