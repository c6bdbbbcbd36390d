// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamseries

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/identity"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// worker is the memory that one batch needs.
type worker struct {
	*Recorder
	analyzer *latency.Analyzer
	spans    *streamspan.Maker   // of streams that are recorded by way of a span
	previews *streamspan.Maker   // of streams that are recorded by another way, or later
	finished series.Contribution // of the current stream, whose latency is analyzed into it
	values   []string            // of its dimensions, and attributes of conventions
	keys     streamKeys
	found    identity.Finder[streamIdentity]
	fresh    []bool
	verdicts []judge.Verdict

	// Of the current batch and stream.
	now       time.Time
	tally     spanreader.Tally
	latencies latencyreport.Tally
	removed   removedAttributes
	stream    assembly.Finished
	span      streamspan.ID // of the stream, for exemplars
	request   latency.Observed
}

// Outcome, Mistaken, Number, Cut and Attribute make the current stream a request to judge.
var _ judge.Subject = (*worker)(nil)

func (w *worker) Outcome() string { return w.finished.Latency.Outcome }
func (w *worker) Mistaken() bool {
	return slo.IsClientMistake(w.finished.Latency.Outcome, w.finished.Status)
}
func (w *worker) Number(id numbers.ID) latency.Measure { return w.finished.Latency.Measures[id] }
func (w *worker) Cut() bool                            { return w.finished.Cut }
func (w *worker) Interrupted() bool                    { return false } // see record

// release forgets what refers to the memory of the streams.
func (w *worker) release() {
	w.stream = assembly.Finished{}
	w.keys.resource = nil
	w.found.Reset()
}

func (w *worker) identityOf(stream *assembly.Finished) *streamIdentity {
	vantage, end := byte(stream.Start.Vantage), stream.EndAttributes()
	id := w.found.Find(vantage, stream.Resource, stream.Attributes, end)
	if id == nil { // restored from a damaged storage
		id = w.resolve(&identity.Stream{Resource: stream.Resource, Attributes: slices.Concat(stream.Attributes, end), Vantage: vantage})
	}
	return id
}

// record adds a finished stream, unless it was added before.
func (w *worker) record(stream assembly.Finished, fresh bool) {
	id := w.identityOf(&stream)
	w.removed.add(id, stream.Resource)
	w.stream = stream
	switch {
	case !fresh:
		_ = stream.Chunks.Timeline() // counts repeated chunks
		w.tally.Duplicates++
	case id.onSpan || hasErrorType(stream) || stream.Chunks.HasAudio() || stream.Interrupted():
		w.recordSpan()
	default:
		if w.analyze(id) != nil { // restored from a damaged storage
			w.recordSpan()
			return
		}
		w.contribute(id, stream.Resource, stream.Client)
	}
}

// hasErrorType reports whether the span of a stream gets an error.type that its sender did not set, which may be
// a dimension.
func hasErrorType(stream assembly.Finished) bool {
	_, errorType := stream.Outcome()
	return errorType != ""
}

// analyze derives the latency of the current stream.
func (w *worker) analyze(id *streamIdentity) error {
	line := w.stream.Chunks.Timeline()
	observed := streamspan.Observed(&w.stream, nil) // &line would be moved to the heap
	return w.derive(&observed, id, usageOf(&w.stream), line.WalkFrom(observed.Start))
}

// usageOf returns the token counts that the end of a stream reports.
func usageOf(stream *assembly.Finished) assembly.Usage {
	if stream.End == nil {
		return assembly.Usage{}
	}
	return stream.End.Usage
}

// derive derives the latency of a stream from what it reports, as the reader of token_stream's spans
// sees it.
func (w *worker) derive(s *source.TokenStream, id *streamIdentity, usage assembly.Usage, chunks timeline.Walk) error {
	f := &w.finished
	f.Reset(w.now)
	f.Cut, f.Failed, f.Seconds = s.Cut, s.Outcome == names.OutcomeError, max(0, float64(s.End-s.Start))/1e9
	r := &w.request
	*r = latency.Observed{} // in its place; a literal would be copied
	r.Duration = time.Duration(s.End - s.Start)
	r.Queue = s.Queue()
	r.OutputTokens, r.InputTokens, r.CachedInputTokens = usage.Output, usage.Input, usage.CachedInput
	r.ReasoningTokens, r.Choices = usage.Reasoning, id.choices
	r.LastChunksDropped = s.ChunksDropped
	r.StreamAsked = id.streamAsked
	r.Outcome, r.Failed, r.Reason = s.Outcome, f.Failed, s.Reason
	if err := w.analyzer.AnalyzeInto(&f.Latency, r, chunks); err != nil {
		return err
	}
	f.Latency.Report(numbers.InputTokens, usage.Input)
	f.Latency.Report(numbers.OutputTokens, usage.Output)
	f.Latency.Report(numbers.ReasoningTokens, usage.Reasoning)
	f.Latency.Report(numbers.CachedInputTokens, usage.CachedInput)
	f.Latency.Report(numbers.CacheWriteInputTokens, usage.CacheWrite)
	return nil
}

// contribute adds the request whose latency was derived last.
func (w *worker) contribute(id *streamIdentity, resource []byte, client *httpguard.Client) {
	f := &w.finished
	f.Status = id.status
	w.latencies.Add(&f.Latency, id.unusable)
	w.latencies.Explain(&f.Latency, resource)
	f.TraceID, f.SpanID, f.Client = w.span.Trace, w.span.Span, client
	f.Trace = w.stream.Start.TraceID
	if w.rules.Any() {
		w.verdicts = id.rules.Judge(w.verdicts[:0], w)
		if slow, timed := judge.Slow(w.verdicts, w.Outcome()); timed && w.stream.Engine != nil {
			w.stream.Engine.Judge(engines.Now(), slow)
		}
		for i := range w.verdicts {
			f.Verdicts.Add(names.CleanLabel(w.verdicts[i].SLO), w.verdicts[i].Verdict)
		}
	}
	copy(w.values, id.values)
	f.Vantage = id.vantage
	f.Complete()
	w.dimensions.SetBands(f)
	w.tally.Add(w.keeper.AddTo(id.series, f), f)
}

// recordSpan adds a stream by way of its span.
func (w *worker) recordSpan() {
	traces := w.spans.Make([]assembly.Finished{w.stream}, &w.latencies).Traces
	options := spanreader.Options{Dimensions: w.dimensions, Objectives: w.objectives}
	tally := spanreader.Read(traces, &options, w.now, func(r *series.Contribution) series.Recorded {
		r.TraceID, r.SpanID, r.Client = w.span.Trace, w.span.Span, w.stream.Client
		return w.keeper.AddTo(nil, r)
	})
	w.tally.Merge(&tally)
}

// Attribute returns an attribute of the current stream's annotated span. Conditions on the outcome need no
// span.
func (w *worker) Attribute(name string) (v pcommon.Value, ok bool) {
	if name == names.Outcome {
		return outcomes[w.finished.Latency.Outcome], true
	}
	span, resource := w.attributes()
	return attributes.LookUp(name, span, resource)
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
	span, resource, _ := w.annotated(w.stream)
	return span.Attributes(), resource
}

// annotated returns the annotated span of a stream that is not recorded by way of it, and its resource.
func (w *worker) annotated(stream assembly.Finished) (span ptrace.Span, resource pcommon.Map, removed int) {
	made := w.previews.Make([]assembly.Finished{stream}, nil)
	spans := made.Traces.ResourceSpans().At(0)
	return spans.ScopeSpans().At(0).Spans().At(0), spans.Resource().Attributes(), made.Removed
}
