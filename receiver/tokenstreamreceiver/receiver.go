// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/server"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamseries"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// tokenStreamReceiver sends finished streams to a traces pipeline as spans, to a metrics pipeline
// as series, or to both.
type tokenStreamReceiver struct {
	cfg       *Config
	settings  receiver.Settings
	telemetry *metadata.TelemetryBuilder
	rules     *judge.Rules // of the SLOs in latency
	doubts    *diagnostics.Doubts
	server    *server.Server
	ingester  *ingest.Ingester
	expirer   *ingest.Expirer
	open      *openStreams
	engines   *engines.Watch     // nil without liveness
	publisher *publish.Publisher // nil without a metrics pipeline

	// closing is done once live requests must end.
	closing  context.Context
	close    context.CancelFunc
	sweeping sync.WaitGroup
}

// newReceiver returns a receiver without a pipeline.
func newReceiver(cfg *Config, set receiver.Settings) (*tokenStreamReceiver, error) {
	return newReceiverWithClock(cfg, set, engines.Now)
}

// newReceiverWithClock expects a monotonic clock with any origin.
func newReceiverWithClock(cfg *Config, set receiver.Settings, now func() time.Duration) (*tokenStreamReceiver, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	rules, err := cfg.latency().Rules()
	if err != nil {
		return nil, err
	}
	store := assembly.NewStore(cfg.limits(), now)
	r := &tokenStreamReceiver{
		cfg:       cfg,
		settings:  set,
		telemetry: telemetry,
		rules:     rules,
		doubts:    diagnostics.NewDoubts(set.Logger, time.Now),
		ingester: ingest.New(&ingest.Settings{
			Store: store, Telemetry: telemetry, Reporter: latencyreport.New(telemetry, set.Logger), Now: now, StorageID: cfg.StorageID,
			Cold:  ingest.NewColdStarts(cfg.latency()),
			Spans: streamspan.Settings{Service: cfg.ServiceName},
		}),
	}
	if cfg.Latency.HasValue() {
		r.annotateSpans(nil)
	}
	if rules.Any() {
		r.ingester.Unapplied = judge.NewUnapplied(r.doubts, rules)
	}
	if liveness := cfg.Liveness.Get(); liveness != nil {
		r.engines = watchEngines(liveness, store, set.Logger)
	}
	r.closing, r.close = context.WithCancel(context.Background())
	r.open = &openStreams{store: store, service: cfg.ServiceName, timeouts: cfg.timeouts(), closing: r.closing}
	r.server, err = server.New(&server.Settings{
		Receiver: set, HTTP: cfg.Protocols.HTTP.Get(), GRPC: cfg.Protocols.GRPC.Get(), Ingester: r.ingester,
		IdleTimeout: cfg.IdleTimeout, MaxEventBytes: cfg.MaxEventBytes,
		MaxLiveRequests: cfg.MaxLiveRequests, MaxSharePerClient: cfg.MaxSharePerClient,
		Closing: r.closing,
	})
	if err != nil {
		return nil, err
	}
	r.expirer, err = ingest.NewExpirer(r.ingester, set, cfg.timeouts())
	return r, err
}

// annotateSpans makes the receiver write latency and verdicts on spans in place of timelines.
// A nil selection sends all spans.
func (r *tokenStreamReceiver) annotateSpans(selection *streamspan.Selection) {
	rules := r.rules
	if selection != nil { // the series count the requests
		rules = rules.Uncounted()
	}
	r.ingester.Spans = streamspan.Settings{
		Service: r.cfg.ServiceName, Latency: r.cfg.latency(), Rules: rules, Logger: r.settings.Logger, Selection: selection,
	}
}

// sendTraces makes the receiver send spans.
func (r *tokenStreamReceiver) sendTraces(next consumer.Traces) {
	r.ingester.Next = next
}

// sendMetrics makes the receiver aggregate streams into series, and send these.
func (r *tokenStreamReceiver) sendMetrics(next consumer.Metrics) error {
	config := r.cfg.series()
	publisher, err := publish.New(publish.Settings{
		Config:    config,
		Telemetry: r.settings.TelemetrySettings,
		Component: r.settings.ID,
		Kind:      component.KindReceiver,
		Scope:     metadata.ScopeName,
		Next:      next,
		Refused:   r.telemetry.ReceiverTokenStreamFlushesRefused,
		Now:       time.Now,

		OpenStreams:        func() []inprocess.VisitOpenStreams { return []inprocess.VisitOpenStreams{r.open.visit} },
		Engines:            r.ownEngines,
		MaxSeriesPerClient: httpguard.ShareOf(config.Shared.Series.MaxSeries, r.cfg.MaxSharePerClient),
	})
	if err != nil {
		return err
	}
	r.publisher = publisher
	r.ingester.Series = r.newRecorder(publisher.Keeper, time.Now)
	var breaches func(*assembly.Finished) bool
	if r.cfg.Spans.Breached && r.rules.Any() {
		breaches = r.ingester.Series.Breaches
	}
	selection, err := streamspan.NewSelection(r.cfg.Spans.Share, breaches)
	if err != nil {
		return fmt.Errorf("spans::share: %w", err)
	}
	r.annotateSpans(selection)
	return nil
}

// newRecorder returns a recorder of the streams that the receiver finishes.
func (r *tokenStreamReceiver) newRecorder(keeper streamseries.Keeper, now func() time.Time) *streamseries.Recorder {
	return streamseries.New(&streamseries.Settings{
		Service: r.cfg.ServiceName, Latency: r.cfg.latency(), Rules: r.rules, Series: r.cfg.series(), Keeper: keeper,
		Reporter: r.ingester.Reporter, Logger: r.settings.Logger, Now: now,
	})
}
