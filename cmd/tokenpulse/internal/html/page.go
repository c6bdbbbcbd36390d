// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package html writes a report as one HTML file: the live page, with the answers of its API inside.
package html

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/report"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/page"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// maxHistory limits the memory of the history, in bytes.
const maxHistory = 48 << 20

// Page collects what the live page shows of requests. It is not safe for concurrent use.
type Page struct {
	sli        *keeper.Config
	engine     *series.Engine
	history    *history.Store
	slowest    *slowest.Store
	thresholds page.Thresholds
	requests   uint64
	recording  page.Recording
}

// New returns a page without a request.
func New(sli *keeper.Config) *Page {
	p := &Page{sli: sli, slowest: slowest.New(slices.Index(sli.Series.Dimensions.Names(), names.GenAIRequestModel))}
	p.record(history.New(maxHistory))
	return p
}

// record makes a history that of the requests to come.
func (p *Page) record(h *history.Store) {
	p.history = h
	p.engine = series.NewEngine(series.Options{
		Config: p.sli.Series, Metrics: series.NoMetrics(), Objectives: p.sli.ObjectiveNames(), History: h, AnyOrder: true,
	})
}

// Watch adds a request, at the end of its span. It leaves out a request that its receiver counted, as reports do.
func (p *Page) Watch(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
	if keeper.IsAggregated(span) {
		return
	}
	defer func(arrival time.Time) { r.Arrival = arrival }(r.Arrival)
	r.Arrival = span.EndTimestamp().AsTime()
	if !r.TraceOnly {
		p.requests++
	}
	p.engine.Record(r)
	p.coarsen(span)
	if p.slowest.Accepts(r) {
		p.slowest.Add(r, spanreader.Timeline(span), spanreader.Facts(r.Vantage, span, resource))
	}
	p.thresholds.Learn(r, span)
}

// coarsen keeps the history no finer than the charts are, and within its limit.
func (p *Page) coarsen(span ptrace.Span) {
	r := &p.recording
	if begin := span.StartTimestamp().AsTime(); r.Begin.IsZero() || begin.Before(r.Begin) {
		r.Begin = begin
	}
	if end := span.EndTimestamp().AsTime(); end.After(r.End) {
		r.End = end
	}
	p.history.Widen(r.Step())
	p.history.Shrink()
}

// Write writes a report of the requests as an HTML document.
func (p *Page) Write(out io.Writer, r *report.Report) error {
	p.engine.Fold(r.End)
	notes, recording := r.Notes(), page.Recording{Begin: r.Begin, End: r.End}
	if since, requests := p.kept(); requests < p.requests {
		recording.Begin = since
		notes = append(notes, fmt.Sprintf("%d of the oldest requests are beyond the memory of the charts, and only in the table and the JSON", p.requests-requests))
	}
	live := p.live(r, &recording)
	defer live.Close()
	answers, err := answersOf(live.Handler())
	if err != nil {
		return err
	}
	return write(out, &document{Partial: r.Partial, Files: r.Input.Files, Notes: notes, Answers: answers})
}

// kept returns the start of the history, and its requests.
func (p *Page) kept() (since time.Time, requests uint64) {
	view, sum := p.history.View(time.Time{}, time.Unix(1<<40, 0)), new(history.Sum)
	for slot := range view.Slots() {
		slot.AddTo(func(history.Key) *history.Sum { return sum }, new(history.Want))
	}
	for _, n := range sum.Requests {
		requests += n
	}
	return view.Since, requests
}

// live returns the live page of a report's requests.
func (p *Page) live(r *report.Report, recording *page.Recording) *page.Page {
	objectives := p.sli.SLOObjectives()
	slos := new(inprocess.Registry[[]slo.Definition])
	slos.Set(p, definitions(r.SLOs))
	return page.New(page.Options{
		Version: version(), Dimensions: p.sli.Series.Dimensions, Objectives: objectives, MaxSeries: p.sli.Series.MaxSeries,
		Engine: p.engine, History: p.history, Slowest: p.slowest, Thresholds: &p.thresholds, SLOs: slos,
		Tracker:     slo.NewTracker(slo.TrackerOptions{Objectives: objectives, MaxSeries: 1}, r.End),
		Comparisons: compare.New(nil, nil), OpenStreams: new(inprocess.Registry[inprocess.VisitOpenStreams]),
		Endpoints: new(inprocess.Registry[[]inprocess.Endpoint]), Doubts: new(inprocess.Registry[*diagnostics.Doubts]),
		Engines: func() []liveness.Status { return nil }, Requests: httpguard.NewShares(1, 1), Now: func() time.Time { return r.End },
		Recording: recording,
	})
}

// definitions returns the SLOs whose definition is known.
func definitions(slos []report.SLO) (all []slo.Definition) {
	for _, s := range slos {
		if s.Indicator != "" {
			all = append(all, slo.Definition{Name: s.Name, Indicator: s.Indicator, Threshold: s.Threshold})
		}
	}
	return all
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}
