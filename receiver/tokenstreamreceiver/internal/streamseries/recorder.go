// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package streamseries adds finished streams to their series.
package streamseries

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/identity"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// Settings are what a Recorder needs.
type Settings struct {
	// Service is the name of the service in resources without one.
	Service string
	// Latency has the settings by which latencies are derived and judged.
	Latency *annotate.Config
	// Rules are those of the SLOs in Latency.
	Rules *judge.Rules
	// Series has the dimensions, the objectives and the limit of the series.
	Series *publish.Config
	// Keeper holds the series.
	Keeper Keeper
	// Reporter gets the tally of each batch.
	Reporter *latencyreport.Reporter
	// Logger warns of streams whose latency cannot be derived.
	Logger *zap.Logger
	// Now returns the time of arrival of a batch.
	Now func() time.Time
}

// Keeper is the part of a keeper.Keeper that a Recorder uses.
type Keeper interface {
	Recognised() *dedup.Set
	AddTo(h *series.Handle, r *series.Contribution) series.Recorded
	Count(ctx context.Context, tally *spanreader.Tally)
}

// Recorder adds finished streams to series, without a span. The series are those that
// the streams' spans would be added to behind a token_latency processor. It is safe for concurrent
// use.
type Recorder struct {
	// Identities caches the series and the SLOs of streams by their attributes.
	Identities *identity.Cache[streamIdentity]

	latency    *annotate.Config
	dimensions spanreader.Dimensions
	objectives slo.Names
	// onSpan means that all streams are recorded by way of a span.
	onSpan   bool
	keeper   Keeper
	now      func() time.Time
	rules    *judge.Rules
	reporter *latencyreport.Reporter
	workers  sync.Pool // of *worker
}

// New returns a Recorder.
func New(s *Settings) *Recorder {
	shared := &s.Series.Shared
	r := &Recorder{
		latency: s.Latency, dimensions: spanreader.NewDimensions(shared.Series.Dimensions, shared.Conventions.AttributesRead()...), objectives: shared.ObjectiveNames(),
		keeper: s.Keeper, now: s.Now, rules: s.Rules, reporter: s.Reporter,
	}
	if shared.Conventions.On() {
		r.latency = r.latency.WithChunkGaps()
	}
	r.onSpan = dependsOnRequest(shared.Series.Dimensions, r.latency.AttributesRead())
	options := r.latency.SeriesOptions()
	recorded := streamspan.Settings{Service: s.Service, Latency: r.latency, Rules: r.rules, Logger: s.Logger}
	previewed := recorded
	previewed.Rules, previewed.Logger = r.rules.Uncounted(), zap.NewNop()
	r.Identities = r.newIdentities(shared)
	r.workers.New = func() any {
		w := &worker{
			Recorder: r,
			analyzer: latency.NewAnalyzer(options),
			spans:    streamspan.New(&recorded),
			previews: streamspan.New(&previewed),
			values:   r.dimensions.Values(),
			keys:     streamKeys{set: r.keeper.Recognised()},
			found:    r.Identities.NewFinder(),
		}
		w.finished = r.dimensions.Request(w.values)
		w.finished.Verdicts.Objectives = r.objectives
		return w
	}
	return r
}

// Record adds finished streams, whose transaction must be committed, to their series. spans are the IDs of the spans that
// were sent of them, by stream, for exemplars to refer to; nil if no span was sent. It returns the number of attributes
// that senders must not set.
func (r *Recorder) Record(ctx context.Context, finished []assembly.Finished, spans []streamspan.ID) (removed int) {
	w := r.workers.Get().(*worker)
	defer r.workers.Put(w)
	defer w.release()
	w.now, w.tally = r.now(), spanreader.Tally{}
	w.removed.reset()
	w.keys.reset()
	for i := range finished {
		addKey(&w.keys, &finished[i].Start, finished[i].ID, finished[i].Resource)
	}
	w.fresh = w.keys.set.AddAll(w.keys.keys, w.now, w.fresh[:0])
	for i := range finished {
		if w.span = (streamspan.ID{}); spans != nil {
			w.span = spans[i]
		}
		w.record(finished[i], w.fresh[i])
	}
	r.keeper.Count(ctx, &w.tally)
	r.reporter.Report(ctx, &w.latencies)
	return w.removed.total
}

// Breaches reports whether a stream breaches an SLO.
func (r *Recorder) Breaches(stream *assembly.Finished) bool {
	w := r.workers.Get().(*worker)
	defer r.workers.Put(w)
	defer w.release()
	id := w.identityOf(stream)
	if !id.rules.Any() {
		return false
	}
	w.stream = *stream
	if id.onSpan || w.analyze(id) != nil {
		span, _ := w.attributes()
		_, breached := span.Get(names.SLOBreached)
		return breached
	}
	w.finished.Status = id.status
	return id.rules.Breaches(w)
}
