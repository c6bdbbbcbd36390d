// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package page serves the live page and its API. openapi.yaml describes the API; every
// number on the page comes from it.
package page

import (
	"context"
	"crypto/rand"
	_ "embed" // for openapi.yaml
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// Options of a Page.
type Options struct {
	// Version is that of the Collector.
	Version string
	// Dimensions are those of the series.
	Dimensions series.Dimensions
	Objectives []slo.Objective
	MaxSeries  int
	// TraceLink is a template with `{trace_id}` and perhaps `{span_id}`, or empty.
	TraceLink string

	Engine     *series.Engine
	Tracker    *slo.Tracker
	History    *history.Store
	Slowest    *slowest.Store
	Thresholds *Thresholds
	// Comparisons are the pairs of values with a verdict.
	Comparisons *compare.Store
	// Capacities are the limits of replicas, or nil.
	Capacities *capacity.Table
	// OpenStreams, Endpoints, SLOs and Doubts are those of the components of this process.
	OpenStreams *inprocess.Registry[inprocess.VisitOpenStreams]
	Endpoints   *inprocess.Registry[[]inprocess.Endpoint]
	SLOs        *inprocess.Registry[[]slo.Definition]
	Doubts      *inprocess.Registry[*diagnostics.Doubts]
	// Engines returns those of all receivers of this process, by name, or nil if none judges engines.
	Engines func() []liveness.Status
	// EventStreams are those that clients may have open.
	EventStreams *httpguard.Shares
	// Requests are those that may wait for an answer at a time.
	Requests *httpguard.Shares
	Now      func() time.Time
	// Recording is set for a page of a recording. It has no present: its answers are about all of the recording.
	Recording *Recording
}

// Page serves the live page and its API.
type Page struct {
	Options
	dimensions []string // their names
	// streamLabels are read of open streams: the dimensions of the page first, then what names model and replica.
	streamLabels spanreader.Dimensions
	boot         string
	answers      *answers
	clients      clients

	// folding guards folded: when the series last handed their gains to the history.
	folding sync.Mutex
	folded  time.Time
}

// New returns a page. Close it before the server that serves it.
func New(o Options) *Page {
	p := &Page{Options: o, dimensions: o.Dimensions.Names(), streamLabels: streamLabels(o.Dimensions), boot: rand.Text(), answers: newAnswers()}
	p.clients.closing, p.clients.close = context.WithCancel(context.Background())
	return p
}

// Close ends the event streams, and waits for nothing.
func (p *Page) Close() { p.clients.close() }

//go:embed openapi.yaml
var openAPI []byte

// Root of the API.
const root = "/api/v1/"

// Handler serves `/` and `/api/`.
func (p *Page) Handler() http.Handler {
	api := http.NewServeMux()
	api.HandleFunc("GET "+root+"openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	for name, answer := range map[string]func(*query) (any, error){
		"meta":          p.meta,
		"now":           p.now,
		"engines":       p.engines,
		"worst":         p.worst,
		"trends":        p.trends,
		"distributions": p.distributions,
		"heatmap":       p.heatmap,
		"load":          p.load,
		"capacity":      p.capacity,
		"prompts":       p.prompts,
		"requests":      p.requests,
		"requests/{id}": p.request,
	} {
		api.HandleFunc("GET "+root+name, p.serve(name, answer))
	}
	api.HandleFunc("GET "+root+"compare", p.comparing(p.readComparison))
	api.HandleFunc("POST "+root+"compare", p.comparing(p.beginComparison))
	api.HandleFunc("DELETE "+root+"compare", p.comparing(p.endComparison))
	api.HandleFunc("/", unknownPath)

	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"events", p.events) // compression would hold events back
	mux.Handle("/api/", gzhttp.GzipHandler(api))
	mux.Handle("/", gzhttp.GzipHandler(http.HandlerFunc(asset)))
	return secure(refuseForeignChanges(mux))
}

// maxFoldAge is the longest time that a request waits until it is in an answer.
const maxFoldAge = 500 * time.Millisecond

// fold makes the series hand their gains to the history, unless they just did.
func (p *Page) fold() {
	p.folding.Lock()
	defer p.folding.Unlock()
	if now := p.Now(); now.Sub(p.folded) >= maxFoldAge {
		p.Engine.Fold(now)
		p.folded = now
	}
}
