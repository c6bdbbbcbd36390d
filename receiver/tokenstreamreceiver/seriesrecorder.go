// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/contribution"
	"github.com/tokenpulse/tokenpulse/internal/identity"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper"
	"github.com/tokenpulse/tokenpulse/internal/slo"
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
	unapplied  *annotate.Unapplied
	identities *identity.Cache[seriesIdentity]
	workers    sync.Pool // of *seriesWorker
	// exemplars means that spans are sent for exemplars to refer to.
	exemplars bool
}

// seriesSettings are the settings that a recorder needs.
type seriesSettings struct {
	latency    *annotate.Config
	publish    *publish.Config
	dimensions []string
	objectives slo.Names
}

// seriesSettings returns the settings of a metrics pipeline, or their defaults.
func (c *Config) seriesSettings() seriesSettings {
	s := seriesSettings{latency: c.Latency.Get(), publish: c.Series.Get()}
	if s.latency == nil {
		s.latency = annotate.DefaultConfig()
	}
	if s.publish == nil {
		s.publish = new(publish.NewDefaultConfig())
	}
	s.dimensions, s.objectives = s.publish.Shared.Series.Dimensions, s.publish.Shared.ObjectiveNames()
	return s
}

// seriesWorker is the memory that one batch needs.
type seriesWorker struct {
	*seriesRecorder
	analyzer  *latency.Analyzer
	annotator *annotate.Annotator
	spans     annotatedSpans
	builder   contribution.Builder
	keys      streamKeys
	fresh     []bool
	verdicts  []annotate.Verdict
	judged    annotate.Request

	// Of the current batch and stream.
	now     time.Time
	tally   spanreader.Tally
	removed removedAttributes
	stream  assembly.Finished
	whole   *wholeStream // in place of stream, or nil
	request latency.Request
	derived latency.Latency
	// The last large resource, and its digest.
	digested []byte
	large    resource
}

func newSeriesRecorder(config seriesSettings, k *keeper.Keeper, store *assembly.Store, rules *annotate.Rules, now func() time.Time) *seriesRecorder {
	r := &seriesRecorder{config: config, keeper: k, add: k.AddTo, store: store, now: now, rules: rules}
	options := config.latency.Options()
	withoutPercentiles := options
	withoutPercentiles.NoPercentiles = !config.latency.ReadsPercentiles()
	r.workers.New = func() any {
		w := &seriesWorker{
			seriesRecorder: r,
			analyzer:       latency.NewAnalyzer(withoutPercentiles),
			annotator:      annotate.NewAnnotator(config.latency),
			builder:        contribution.NewBuilder(len(config.dimensions), config.objectives),
			keys:           streamKeys{set: k.Recognised()},
		}
		w.spans = annotatedSpans{analyzer: latency.NewAnalyzer(options), annotator: w.annotator, rules: rules}
		w.judged.Attributes = w.attributes
		return w
	}
	r.identities = r.newIdentities()
	return r
}

// record adds streams to their series: finished ones, whose transaction must be committed, and
// whole ones. It returns the number of attributes that senders must not set.
func (r *seriesRecorder) record(ctx context.Context, finished []assembly.Finished, whole []wholeStream) (removed int) {
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
		w.record(finished[i], w.fresh[i])
	}
	w.stream, w.digested = assembly.Finished{}, nil
	fresh := w.fresh[len(finished):]
	for i := range whole {
		if whole[i].id != nil {
			w.recordWhole(&whole[i], fresh[0])
			fresh = fresh[1:]
		}
	}
	r.keeper.Count(ctx, &w.tally)
	if r.unapplied != nil {
		r.unapplied.Inspect()
	}
	return w.removed.total
}

// record adds a finished stream, unless it was added before.
func (w *seriesWorker) record(stream assembly.Finished, fresh bool) {
	of := identity.Stream{Resource: stream.Resource, Attributes: stream.Attributes, Vantage: byte(stream.Start.Vantage)}
	if stream.End != nil {
		of.EndAttributes = stream.End.Attributes
	}
	id := w.identities.Find(&of)
	w.removed.add(id, stream.Resource)
	w.stream = stream
	switch {
	case !fresh:
		_ = stream.Chunks.Timeline() // counts repeated chunks
		w.tally.Duplicates++
	case id.onSpan:
		w.recordSpan()
	default:
		line := stream.Chunks.Timeline()
		w.request = requestOf(stream)
		duration := w.request.Duration
		err := w.analyzer.AnalyzeInto(&w.derived, &w.request, line.WalkFrom(stream.Start.UnixNano))
		if err != nil { // restored from a damaged storage
			w.recordSpan()
			return
		}
		ended := ended{cut: stream.Cut}
		if stream.End != nil {
			ended.usage, ended.failed = stream.End.Usage, stream.End.Error != ""
		}
		w.contribute(id, duration, &ended)
	}
}

// recordWhole adds a whole stream, unless it was added before.
func (w *seriesWorker) recordWhole(s *wholeStream, fresh bool) {
	w.removed.add(s.id, s.Resource)
	if !fresh {
		w.tally.Duplicates++
		return
	}
	w.whole = s
	w.request = requestOfWhole(&s.Whole)
	duration := w.request.Duration
	if w.analyzer.AnalyzeInto(&w.derived, &w.request, s.Walk()) != nil {
		return // cannot be: the gaps are checked
	}
	w.contribute(s.id, duration, &ended{usage: s.End.Usage, failed: s.End.Failed})
	w.whole = nil
}

// requestOf returns what a stream reports, as the reader of token_stream's spans sees it.
func requestOf(stream assembly.Finished) latency.Request {
	request := latency.Request{
		Duration:          time.Duration(stream.EndUnixNano() - stream.Start.UnixNano),
		LastChunksDropped: int64(stream.Dropped()),
		StartUnknown:      stream.Start.Implied,
		Frames:            stream.Chunks.Frames,
		Outcome:           outcomeOf(stream.End),
	}
	if stream.End != nil {
		request.Failed = stream.End.Error != ""
		request.OutputTokens = stream.End.Usage.Output
	}
	if !stream.Start.Implied && stream.Scheduled != 0 {
		request.Queue = optional.Of(time.Duration(stream.Scheduled - stream.Start.UnixNano))
	}
	return request
}

// requestOfWhole is requestOf for a whole stream.
func requestOfWhole(s *assembly.Whole) latency.Request {
	request := latency.Request{
		Duration:     time.Duration(s.End.UnixNano - s.Start.UnixNano),
		Outcome:      outcomeOfEnd(s.End.Failed, s.End.Cancelled),
		Failed:       s.End.Failed,
		OutputTokens: s.End.Usage.Output,
	}
	if s.Scheduled != 0 {
		request.Queue = optional.Of(time.Duration(s.Scheduled - s.Start.UnixNano))
	}
	return request
}

// ended is what else a series gets of a stream.
type ended struct {
	usage       assembly.Usage
	failed, cut bool
}

// contribute adds the latency that was derived last.
func (w *seriesWorker) contribute(id *seriesIdentity, duration time.Duration, ended *ended) {
	b := &w.builder
	b.Begin(w.now)
	if w.exemplars {
		b.Request.TraceID, b.Request.SpanID = idsOf(w.stream.Stream, w.digest(w.stream.Resource))
	}
	for _, count := range [...]struct {
		tokens optional.Value[int64]
		to     series.Count
	}{
		{ended.usage.Input, series.InputTokens},
		{ended.usage.Output, series.OutputTokens},
		{ended.usage.Reasoning, series.ReasoningTokens},
		{ended.usage.CachedInput, series.CachedInputTokens},
	} {
		if count.tokens.Known {
			b.SetCount(count.to, float64(count.tokens.Value))
		}
	}
	w.annotator.Contribute(b, &w.derived, w.analyzer.InterTokenSketch(), w.analyzer.InterChunkSketch())
	b.Cut = ended.cut
	if id.rules.Any() {
		w.judged.Derived, w.judged.Cut = &w.derived, ended.cut
		w.verdicts = id.rules.Judge(w.verdicts[:0], &w.judged)
		for i := range w.verdicts {
			b.AddVerdict(series.CleanLabel(w.verdicts[i].SLO), w.verdicts[i].Verdict)
		}
	}
	b.End(ended.failed, max(0, float64(duration))/1e9)
	w.tally.Add(w.seriesRecorder.add(id.series, &b.Request), b)
}

// digest returns the digest of a resource that is too large to be hashed by each stream.
func (w *seriesWorker) digest(encoded []byte) *resource {
	if len(encoded) > maxHashedResource && (len(encoded) != len(w.digested) || &encoded[0] != &w.digested[0]) {
		w.digested, w.large.digest = encoded, sha256.Sum256(encoded)
	}
	return &w.large
}

// recordSpan adds a stream by way of its span.
func (w *seriesWorker) recordSpan() {
	traces, _ := w.spans.traces(w.stream)
	options := spanreader.Options{Dimensions: w.config.dimensions, Objectives: w.config.objectives}
	tally := spanreader.Read(traces, &options, w.now, func(r *series.Request) series.Recorded {
		if !w.exemplars {
			r.TraceID, r.SpanID = [16]byte{}, [8]byte{}
		}
		return w.seriesRecorder.add(nil, r)
	})
	w.tally.Merge(&tally)
}

// attributes returns those of the current stream's annotated span, and of its resource.
func (w *seriesWorker) attributes() (pcommon.Map, pcommon.Map) {
	stream := w.stream
	if w.whole != nil {
		stream = w.whole.finished(w.store)
	}
	span, resource, _ := w.spans.annotated(stream)
	return span.Attributes(), resource
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
