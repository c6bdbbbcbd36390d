// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// tokenLatency annotates spans. It keeps no state between batches, except the replicas of cold starts, and to recognise
// mistakes in the pipeline.
type tokenLatency struct {
	config    *Config
	rules     *judge.Rules
	doubts    *diagnostics.Doubts
	unapplied *judge.Unapplied
	pieces    *pieces
	cold      *annotate.ColdStarts // nil without cold_start
	workers   sync.Pool            // of *worker
	telemetry *telemetry
	logger    *zap.Logger
	notices   *diagnostics.Notices
}

// worker is the memory that one batch needs.
type worker struct {
	observer  source.Observer
	analyzer  *latency.Analyzer
	observed  *source.Observation // of the last span, if its latency is derived
	derived   latency.Latency     // likewise
	begins    begins              // of the current scope
	annotator *annotate.Annotator
	judge     *judge.SpanJudge
	tree      tree
	tally     tally
}

func newTokenLatency(set component.TelemetrySettings, cfg *Config) (*tokenLatency, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	rules, err := cfg.Rules()
	if err != nil {
		return nil, err
	}
	options, doubts := cfg.Options(), diagnostics.NewDoubts(set.Logger, time.Now)
	return &tokenLatency{
		config:    cfg,
		rules:     rules,
		doubts:    doubts,
		unapplied: judge.NewUnapplied(doubts, rules),
		pieces:    &pieces{doubts: doubts},
		cold:      annotate.NewColdStarts(cfg),
		workers: sync.Pool{New: func() any {
			return &worker{
				analyzer:  latency.NewAnalyzer(options),
				annotator: annotate.NewAnnotator(cfg),
				judge:     judge.NewSpanJudge(rules),
				tree:      tree{writesDecodeShare: cfg.Writes(numbers.DecodeShare)},
				tally:     newTally(),
			}
		}},
		telemetry: telemetry,
		logger:    diagnostics.OnceAMinute(set.Logger),
		notices:   diagnostics.NewNotices(set.Logger, source.Names()),
	}, nil
}

// start reports the SLOs and doubts to the live page.
func (p *tokenLatency) start(context.Context, component.Host) error {
	inprocess.SLOs.Set(p, p.rules.Definitions())
	inprocess.Doubts.Set(p, p.doubts)
	inprocess.ReportIdleExporters(p.logger)
	if p.cold == nil {
		return nil
	}
	return p.telemetry.builder.RegisterProcessorTokenLatencyReplicasEvictedCallback(diagnostics.Gauge(p.cold.Evicted))
}

func (p *tokenLatency) shutdown(context.Context) error {
	inprocess.SLOs.Remove(p)
	inprocess.Doubts.Remove(p)
	p.telemetry.builder.Shutdown()
	return nil
}

func (p *tokenLatency) processTraces(ctx context.Context, traces ptrace.Traces) (ptrace.Traces, error) {
	w := p.workers.Get().(*worker)
	defer p.workers.Put(w)
	for _, resourceSpans := range traces.ResourceSpans().All() {
		p.processResource(ctx, w, resourceSpans)
	}
	if p.config.Join || p.config.RollUp {
		p.processTree(w, traces)
	}
	if p.rules.Any() {
		judgeAll(w, traces)
		p.unapplied.Inspect()
	}
	p.telemetry.report(ctx, &w.tally)
	return traces, nil
}

func (p *tokenLatency) processResource(ctx context.Context, w *worker, resourceSpans ptrace.ResourceSpans) {
	resource, scopes := resourceSpans.Resource().Attributes(), resourceSpans.ScopeSpans()
	phases := phaseSpans{scopes: scopes}
	for i := range scopes.Len() { // not over the scope that phases adds
		scope := scopes.At(i).Scope().Name()
		w.begins = beginsIn(scope, scopes.At(i).Spans())
		var unclaimed int64
		for _, span := range scopes.At(i).Spans().All() {
			if !p.config.TrustAnnotations {
				w.tally.untrusted += annotate.RemoveAnnotations(span.Attributes())
				annotate.RemoveEvents(span)
			}
			// An annotated span already has its phases. With join, phases wait for the engine's.
			withPhases := p.config.Phases && !p.config.Join && !attributes.IsAnnotated(span)
			p.processSpan(w, scope, span)
			if w.observed != nil {
				p.cold.Mark(span, resource, w.observed.Vantage)
			}
			if withPhases && w.observed != nil {
				phases.addTo(span, 0)
			}
			if w.observer.Unclaimed() {
				unclaimed++
			}
			p.explain(resource, scope, w)
		}
		p.telemetry.unclaimed.add(ctx, scope, unclaimed)
	}
	w.begins = nil
}

// explain logs why the worker's last span has no latency.
func (p *tokenLatency) explain(resource pcommon.Map, scope string, w *worker) {
	service := func() string { return attributes.Text(resource, names.ServiceName) }
	if w.observed == nil {
		if w.observer.Unclaimed() {
			p.notices.Unclaimed(service, scope)
		}
		return
	}
	for i := range w.derived.Absences {
		if reason := diagnostics.Reason(&w.derived, i); reason != latency.Present {
			p.notices.Unmeasured(w.observed.Reader, reason, service, scope)
		}
	}
}

// processTree runs the steps that need whole traces.
func (p *tokenLatency) processTree(w *worker, traces ptrace.Traces) {
	w.tree.build(traces)
	defer w.tree.reset()
	p.pieces.inspect(&w.tree)
	p.markRepeats(w)
	w.tree.recallHandovers()
	if p.config.Join {
		w.tree.join(&w.tally)
		w.tree.addPhases(p.config.Phases)
	}
	if p.config.RollUp {
		w.tree.rollUp(&w.tally)
	}
}

// judgeAll writes the verdicts on every model call and every root span that was rolled up.
func judgeAll(w *worker, traces ptrace.Traces) {
	for _, resourceSpans := range traces.ResourceSpans().All() {
		resource := resourceSpans.Resource().Attributes()
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				w.annotator.Expect(w.judge.Judge(span, resource))
				if w.judge.Timed {
					engines.Judged(span.Attributes(), resource, w.judge.Slow)
				}
			}
		}
	}
}

// remedies says, for each reader, what to do about timings that cannot be read.
var remedies = func() (all []string) {
	for _, name := range source.Names() {
		remedy := "check that its sender and every processor before this one run the same release of tokenpulse and leave the span's attributes unchanged"
		if name == names.SourceChunkOffsets {
			remedy = "correct the sender: docs/timeline-attributes.md has the rules"
		}
		all = append(all, remedy)
	}
	return all
}()

// processSpan writes the latency of a model call on its span, and keeps it in the worker. A span that
// is not a model call or cannot be read stays unchanged, apart from unread inputs that are not trusted.
func (p *tokenLatency) processSpan(w *worker, scope string, span ptrace.Span) {
	observed, err := w.observer.Observe(scope, span)
	w.observed = observed
	if observed == nil {
		w.tally.foreign++
		return
	}
	if err == nil {
		observed.Request.Duration += w.begins.before(span, observed.Request.Duration)
		err = w.analyzer.AnalyzeInto(&w.derived, &observed.Request, observed.Timeline)
	}
	if err != nil {
		w.observed = nil
		w.tally.malformed[observed.Reader]++
		p.logger.Warn("cannot read the token timings of a span, which passes without latency; "+remedies[observed.Reader],
			zap.Error(err), zap.Stringer("trace_id", span.TraceID()), zap.Stringer("span_id", span.SpanID()))
		if !p.config.TrustAnnotations {
			annotate.RemoveUnread(span.Attributes())
		}
		return
	}
	w.tally.add(observed, &w.derived)
	w.annotator.Annotate(span.Attributes(), observed, &w.derived)
	w.annotator.WriteEvents(span, &w.derived.Moments)
}
