// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamseries

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// worker is the memory that one batch needs.
type worker struct {
	*Recorder
	analyzer  *latency.Analyzer
	annotator *annotate.Annotator
	spans     *streamspan.Maker // of streams that are recorded by way of a span
	previews  *streamspan.Maker // of streams that are recorded by another way, or later
	builder   spanreader.Builder
	keys      streamKeys
	fresh     []bool
	verdicts  []judge.Verdict

	// Of the current batch and stream.
	now       time.Time
	tally     spanreader.Tally
	latencies latencyreport.Tally
	removed   removedAttributes
	stream    assembly.Finished
	whole     *wholeStream  // in place of stream, or nil
	span      streamspan.ID // of the stream, for exemplars
	request   latency.Request
	derived   latency.Latency
	cut       bool
}

// Outcome, Number, Cut and Attribute make the current stream a request to judge.
var _ judge.Request = (*worker)(nil)

func (w *worker) Outcome() string                      { return w.derived.Outcome }
func (w *worker) Number(id numbers.ID) latency.Measure { return w.derived.Written(id) }
func (w *worker) Cut() bool                            { return w.cut }

// record adds a finished stream, unless it was added before.
func (w *worker) record(stream assembly.Finished, fresh bool) {
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
func (w *worker) recordWhole(s *wholeStream, fresh bool) {
	w.removed.add(s.id, s.Resource)
	if !fresh {
		w.tally.Duplicates++
		return
	}
	setRequest(&w.request, &source.TokenStream{
		Start: s.Start.UnixNano, End: s.End.UnixNano, Scheduled: s.Scheduled, Outcome: s.End.Outcome(),
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
func (w *worker) analyze() error {
	line := w.stream.Chunks.Timeline()
	observed := streamspan.Observed(&w.stream, nil) // &line would be moved to the heap
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
func (w *worker) count(id *streamIdentity, resource []byte) {
	w.latencies.AddDerived(&w.derived, id.unusable)
	w.latencies.Explain(&w.derived, resource)
}

// contribute adds the request whose latency was derived last.
func (w *worker) contribute(id *streamIdentity, usage assembly.Usage, cut bool) {
	b := &w.builder
	b.Begin(w.now)
	b.Request.TraceID, b.Request.SpanID = w.span.Trace, w.span.Span
	setSum(b, numbers.InputTokens, usage.Input)
	setSum(b, numbers.OutputTokens, usage.Output)
	setSum(b, numbers.ReasoningTokens, usage.Reasoning)
	setSum(b, numbers.CachedInputTokens, usage.CachedInput)
	w.annotator.Contribute(b, &w.derived, w.analyzer.InterTokenSketch(), w.analyzer.InterChunkSketch())
	b.Cut, w.cut = cut, cut
	if w.rules.Any() {
		w.verdicts = id.rules.Judge(w.verdicts[:0], w)
		for i := range w.verdicts {
			b.AddVerdict(series.CleanLabel(w.verdicts[i].SLO), w.verdicts[i].Verdict)
		}
	}
	b.End(w.request.Failed, max(0, float64(w.request.Duration))/1e9)
	w.tally.Add(w.keeper.AddTo(id.series, &b.Request), b)
}

func setSum(b *spanreader.Builder, id numbers.ID, tokens optional.Value[int64]) {
	if tokens.Known {
		b.SetSum(id, float64(tokens.Value))
	}
}

// recordSpan adds a stream by way of its span.
func (w *worker) recordSpan() {
	traces := w.spans.Make([]assembly.Finished{w.stream}, &w.latencies).Traces
	options := spanreader.Options{Dimensions: w.dimensions, Objectives: w.objectives}
	tally := spanreader.Read(traces, &options, w.now, func(r *series.Request) series.Recorded {
		r.TraceID, r.SpanID = w.span.Trace, w.span.Span
		return w.keeper.AddTo(nil, r)
	})
	w.tally.Merge(&tally)
}

// Attribute returns an attribute of the current stream's annotated span. Conditions on the outcome need no
// span.
func (w *worker) Attribute(name string) (v pcommon.Value, ok bool) {
	if name == names.Outcome {
		return outcomes[w.derived.Outcome], true
	}
	span, resource := w.attributes()
	return source.LookUp(name, span, resource)
}

var outcomes = func() map[string]pcommon.Value {
	all := map[string]pcommon.Value{}
	for _, name := range series.OutcomeNames {
		all[name] = pcommon.NewValueStr(name)
	}
	return all
}()

// attributes returns those of the current stream's annotated span, and of its resource.
func (w *worker) attributes() (pcommon.Map, pcommon.Map) {
	stream := w.stream
	if w.whole != nil {
		stream = w.whole.finished(w.store)
	}
	span, resource, _ := w.annotated(stream)
	return span.Attributes(), resource
}

// annotated returns the annotated span of a stream that is not recorded by way of it, and its resource.
func (w *worker) annotated(stream assembly.Finished) (span ptrace.Span, resource pcommon.Map, removed int) {
	made := w.previews.Make([]assembly.Finished{stream}, nil)
	spans := made.Traces.ResourceSpans().At(0)
	return spans.ScopeSpans().At(0).Spans().At(0), spans.Resource().Attributes(), made.Removed
}
