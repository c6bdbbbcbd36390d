// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/contribution"
	"github.com/tokenpulse/tokenpulse/internal/identity"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/logging"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// seriesRecorder adds finished streams to series, without a span. The series are those that
// the streams' spans would be added to behind a token_latency processor.
type seriesRecorder struct {
	config     seriesSettings
	keeper     *keeper.Keeper
	add        func(*series.Handle, *series.Request) series.Recorded // of the keeper; replaced in tests
	store      *assembly.Store
	now        func() time.Time
	rules      *annotate.Rules
	reporter   *latencyReporter
	identities *identity.Cache[seriesIdentity]
	workers    sync.Pool // of *seriesWorker
}

// seriesSettings are the settings that a recorder needs.
type seriesSettings struct {
	latency    *annotate.Config
	publish    *publish.Config
	dimensions []string
	objectives slo.Names
	// onSpan means that all streams are recorded by way of a span.
	onSpan bool
}

// seriesSettings returns the settings of a metrics pipeline, or their defaults.
func (c *Config) seriesSettings() seriesSettings {
	s := seriesSettings{latency: c.latency(), publish: c.Series.Get()}
	if s.publish == nil {
		s.publish = new(publish.NewDefaultConfig())
	}
	s.dimensions, s.objectives = s.publish.Shared.Series.Dimensions, s.publish.Shared.ObjectiveNames()
	s.onSpan = dependsOnRequest(s.dimensions, s.latency.AttributesRead())
	return s
}

// seriesWorker is the memory that one batch needs.
type seriesWorker struct {
	*seriesRecorder
	analyzer  *latency.Analyzer
	annotator *annotate.Annotator
	spans     spanMaker // of streams that are recorded by way of a span
	previews  spanMaker // of streams that are recorded by another way, or later
	builder   contribution.Builder
	keys      streamKeys
	fresh     []bool
	verdicts  []annotate.Verdict
	judged    annotate.Request

	// Of the current batch and stream.
	now       time.Time
	tally     spanreader.Tally
	latencies latencyTally
	removed   removedAttributes
	stream    assembly.Finished
	whole     *wholeStream // in place of stream, or nil
	span      spanID       // of the stream, for exemplars
	request   latency.Request
	derived   latency.Latency
}

func newSeriesRecorder(
	config seriesSettings, k *keeper.Keeper, store *assembly.Store, rules *annotate.Rules, reporter *latencyReporter, logger *zap.Logger,
	now func() time.Time,
) *seriesRecorder {
	r := &seriesRecorder{config: config, keeper: k, add: k.AddTo, store: store, now: now, rules: rules, reporter: reporter}
	options := config.latency.Options()
	options.NoPercentiles = !config.latency.ReadsPercentiles()
	senders, uncounted := newSenders(), rules.Uncounted()
	logger = logging.OnceAMinute(logger)
	r.workers.New = func() any {
		w := &seriesWorker{
			seriesRecorder: r,
			analyzer:       latency.NewAnalyzer(options),
			annotator:      annotate.NewAnnotator(config.latency),
			builder:        contribution.NewBuilder(len(config.dimensions), config.objectives),
			keys:           streamKeys{set: k.Recognised()},
		}
		recorded := newLatencyWriter(config.latency, rules, logger)
		recorded.tally = &w.latencies
		w.spans = spanMaker{senders: senders, timings: recorded}
		w.previews = spanMaker{senders: senders, timings: newLatencyWriter(config.latency, uncounted, zap.NewNop())}
		w.judged.Attributes = w.attributes
		return w
	}
	r.identities = r.newIdentities()
	return r
}

// record adds streams to their series: finished ones, whose transaction must be committed, and
// whole ones. spans are those that were sent of the finished ones, for exemplars to refer to, or
// nil. It returns the number of attributes that senders must not set.
func (r *seriesRecorder) record(ctx context.Context, finished []assembly.Finished, spans []spanID, whole []wholeStream) (removed int) {
	w := r.workers.Get().(*seriesWorker)
	defer r.workers.Put(w)
	w.now, w.tally = r.now(), spanreader.Tally{}
	w.removed.reset()
	w.keys.reset()
	for i := range finished {
		w.keys.add(&finished[i].Start, finished[i].ID, finished[i].Resource)
	}
	for i := range whole {
		if whole[i].id != nil { // otherwise it is a part, which may not be finished
			w.keys.addBytes(&whole[i])
		}
	}
	w.fresh = w.keys.set.AddAll(w.keys.keys, w.now, w.fresh[:0])
	for i := range finished {
		if w.span = (spanID{}); spans != nil {
			w.span = spans[i]
		}
		w.record(finished[i], w.fresh[i])
	}
	w.stream, w.span = assembly.Finished{}, spanID{}
	fresh := w.fresh[len(finished):]
	for i := range whole {
		if whole[i].id != nil {
			w.recordWhole(&whole[i], fresh[0])
			fresh = fresh[1:]
		}
	}
	r.keeper.Count(ctx, &w.tally)
	r.reporter.report(ctx, &w.latencies)
	return w.removed.total
}

// record adds a finished stream, unless it was added before.
func (w *seriesWorker) record(stream assembly.Finished, fresh bool) {
	id := w.identityOf(&stream)
	w.removed.add(id, stream.Resource)
	w.stream = stream
	switch {
	case !fresh:
		_ = stream.Chunks.Timeline() // counts repeated chunks
		w.tally.Duplicates++
	case id.onSpan:
		w.recordSpan()
	default:
		if w.analyze() != nil { // restored from a damaged storage
			w.recordSpan()
			return
		}
		w.count(id, stream.Resource)
		w.contribute(id, usageOf(&stream), stream.Cut)
	}
}

// recordWhole adds a whole stream, unless it was added before.
func (w *seriesWorker) recordWhole(s *wholeStream, fresh bool) {
	w.removed.add(s.id, s.Resource)
	if !fresh {
		w.tally.Duplicates++
		return
	}
	setRequest(&w.request, &source.TokenStream{
		Start: s.Start.UnixNano, End: s.End.UnixNano, Scheduled: s.Scheduled, Outcome: outcomeOfEnd(s.End.Failed, s.End.Cancelled),
	}, s.End.Usage.Output)
	if w.analyzer.AnalyzeInto(&w.derived, &w.request, s.Walk()) != nil {
		return // cannot be: the gaps are checked
	}
	w.count(s.id, s.Resource)
	w.whole = s
	w.contribute(s.id, s.End.Usage, false)
	w.whole = nil
}

// analyze derives the latency of the current stream.
func (w *seriesWorker) analyze() error {
	line := w.stream.Chunks.Timeline()
	observed := observedOf(&w.stream, nil) // &line would be moved to the heap
	setRequest(&w.request, &observed, usageOf(&w.stream).Output)
	return w.analyzer.AnalyzeInto(&w.derived, &w.request, line.WalkFrom(observed.Start))
}

// usageOf returns the token counts that the end of a stream reports.
func usageOf(stream *assembly.Finished) assembly.Usage {
	if stream.End == nil {
		return assembly.Usage{}
	}
	return stream.End.Usage
}

func (r *seriesRecorder) identityOf(stream *assembly.Finished) *seriesIdentity {
	of := identity.Stream{Resource: stream.Resource, Attributes: stream.Attributes, Vantage: byte(stream.Start.Vantage)}
	if stream.End != nil {
		of.EndAttributes = stream.End.Attributes
	}
	return r.identities.Find(&of)
}

// breaches reports whether a stream breaches an SLO.
func (r *seriesRecorder) breaches(stream *assembly.Finished) bool {
	id := r.identityOf(stream)
	if !id.rules.Any() {
		return false
	}
	w := r.workers.Get().(*seriesWorker)
	defer r.workers.Put(w)
	w.stream = *stream
	defer func() { w.stream = assembly.Finished{} }()
	if id.onSpan || w.analyze() != nil {
		span, _ := w.attributes()
		_, breached := span.Get(names.SLOBreached)
		return breached
	}
	return id.rules.Breaches(w.toJudge(stream.Cut))
}

// toJudge returns the stream whose latency was derived last, to judge it.
func (w *seriesWorker) toJudge(cut bool) *annotate.Request {
	w.judged.Derived, w.judged.Cut = &w.derived, cut
	return &w.judged
}

// setRequest sets what a stream reports, as the reader of token_stream's spans sees it.
func setRequest(r *latency.Request, s *source.TokenStream, outputTokens optional.Value[int64]) {
	*r = latency.Request{} // in its place; a literal would be copied
	r.Duration = time.Duration(s.End - s.Start)
	r.Queue = s.Queue()
	r.OutputTokens = outputTokens
	r.LastChunksDropped = s.ChunksDropped
	r.StartUnknown = s.StartUnseen
	r.Frames = s.Frames
	r.Outcome = s.Outcome
	r.Failed = s.Outcome == names.OutcomeError
}

// count adds the request whose latency was derived last to what is reported of the batch.
func (w *seriesWorker) count(id *seriesIdentity, resource []byte) {
	w.latencies.AddDerived(&w.derived, id.unusable)
	w.latencies.explain(&w.derived, resource)
}

// contribute adds the request whose latency was derived last.
func (w *seriesWorker) contribute(id *seriesIdentity, usage assembly.Usage, cut bool) {
	b := &w.builder
	b.Begin(w.now)
	b.Request.TraceID, b.Request.SpanID = w.span.trace, w.span.span
	setCount(b, series.InputTokens, usage.Input)
	setCount(b, series.OutputTokens, usage.Output)
	setCount(b, series.ReasoningTokens, usage.Reasoning)
	setCount(b, series.CachedInputTokens, usage.CachedInput)
	w.annotator.Contribute(b, &w.derived, w.analyzer.InterTokenSketch(), w.analyzer.InterChunkSketch())
	b.Cut = cut
	if w.rules.Any() {
		w.verdicts = id.rules.Judge(w.verdicts[:0], w.toJudge(cut))
		for i := range w.verdicts {
			b.AddVerdict(series.CleanLabel(w.verdicts[i].SLO), w.verdicts[i].Verdict)
		}
	}
	b.End(w.request.Failed, max(0, float64(w.request.Duration))/1e9)
	w.tally.Add(w.add(id.series, &b.Request), b)
}

func setCount(b *contribution.Builder, c series.Count, tokens optional.Value[int64]) {
	if tokens.Known {
		b.SetCount(c, float64(tokens.Value))
	}
}

// recordSpan adds a stream by way of its span.
func (w *seriesWorker) recordSpan() {
	traces := w.spans.make([]assembly.Finished{w.stream}).traces
	options := spanreader.Options{Dimensions: w.config.dimensions, Objectives: w.config.objectives}
	tally := spanreader.Read(traces, &options, w.now, func(r *series.Request) series.Recorded {
		r.TraceID, r.SpanID = w.span.trace, w.span.span
		return w.add(nil, r)
	})
	w.tally.Merge(&tally)
}

// attributes returns those of the current stream's annotated span, and of its resource.
func (w *seriesWorker) attributes() (pcommon.Map, pcommon.Map) {
	stream := w.stream
	if w.whole != nil {
		stream = w.whole.finished(w.store)
	}
	span, resource, _ := w.annotated(stream)
	return span.Attributes(), resource
}

// annotated returns the annotated span of a stream that is not recorded by way of it, and its resource.
func (w *seriesWorker) annotated(stream assembly.Finished) (span ptrace.Span, resource pcommon.Map, removed int) {
	made := w.previews.make([]assembly.Finished{stream})
	spans := made.traces.ResourceSpans().At(0)
	return spans.ScopeSpans().At(0).Spans().At(0), spans.Resource().Attributes(), made.removed
}

// removedAttributes counts attributes that senders must not set, those of each resource once.
type removedAttributes struct {
	total     int
	resources map[string]bool
}

func (r *removedAttributes) reset() {
	r.total = 0
	clear(r.resources)
}

func (r *removedAttributes) add(id *seriesIdentity, resource []byte) {
	r.total += id.removed
	if id.removedFromResource == 0 || r.resources[string(resource)] {
		return
	}
	if r.resources == nil {
		r.resources = map[string]bool{}
	}
	r.resources[string(resource)] = true
	r.total += id.removedFromResource
}
