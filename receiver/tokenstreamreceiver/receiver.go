// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamseries"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// tokenStreamReceiver serves HTTP and gRPC. It sends finished streams to a traces pipeline as
// spans, to a metrics pipeline as series, or to both.
type tokenStreamReceiver struct {
	cfg        *Config
	settings   receiver.Settings
	telemetry  *metadata.TelemetryBuilder
	rules      *judge.Rules // of the SLOs in latency
	doubts     *diagnostics.Doubts
	ingester   *ingester
	expirer    *expirer
	publisher  *publish.Publisher // nil without a metrics pipeline
	liveShares *httpguard.Shares  // of live requests
	requests   sync.Pool          // of *request
	bodies     sync.Pool          // of *messageBody
	unread     httpguard.Bodies   // limits bodies that no handler reads to their end
	lines      sync.Pool          // of *lineReader
	// decoding is full when each CPU decodes a large message.
	decoding chan struct{}

	reportHTTP, reportGRPC, reportExpiry *receiverhelper.ObsReport

	serverHTTP *http.Server
	serverGRPC *grpc.Server
	addrHTTP   net.Addr
	addrGRPC   net.Addr

	handlingHTTP sync.RWMutex // handlers hold the read lock
	cutOffHTTP   context.CancelFunc

	// closing is done once live requests must end.
	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup
}

// newReceiver returns a receiver without a pipeline.
func newReceiver(cfg *Config, set receiver.Settings) (*tokenStreamReceiver, error) {
	epoch := time.Now()
	return newReceiverWithClock(cfg, set, func() time.Duration { return time.Since(epoch) })
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
		ingester: &ingester{
			store: store, telemetry: telemetry, reporter: latencyreport.New(telemetry, set.Logger), now: now, storageID: cfg.StorageID,
		},
	}
	spans := streamspan.Settings{Service: cfg.ServiceName}
	r.ingester.makers.New = func() any { return streamspan.New(&spans) }
	if cfg.Latency.HasValue() {
		r.annotateSpans(nil)
	}
	if rules.Any() {
		r.ingester.unapplied = judge.NewUnapplied(r.doubts, rules)
	}
	r.liveShares = httpguard.NewShares(cfg.MaxLiveRequests, cfg.MaxSharePerClient)
	r.decoding = make(chan struct{}, runtime.GOMAXPROCS(0))
	r.requests.New = func() any { return newRequest(r.ingester) }
	r.bodies.New = func() any { return &messageBody{memory: reservation{store: store}} }
	r.lines.New = func() any { return newLineReader(cfg.MaxEventBytes, store) }
	r.closing, r.close = context.WithCancel(context.Background())
	for transport, report := range map[string]**receiverhelper.ObsReport{
		"http":   &r.reportHTTP,
		"grpc":   &r.reportGRPC,
		"expiry": &r.reportExpiry,
	} {
		*report, err = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
			ReceiverID:             set.ID,
			Transport:              transport,
			ReceiverCreateSettings: set,
		})
		if err != nil {
			return nil, err
		}
	}
	r.expirer = newExpirer(r.ingester, r.reportExpiry, cfg.timeouts())
	return r, nil
}

// annotateSpans makes the receiver write latency and verdicts on spans in place of timelines.
// A nil selection sends all spans.
func (r *tokenStreamReceiver) annotateSpans(selection *streamspan.Selection) {
	rules := r.rules
	if selection != nil { // the series count the requests
		rules = rules.Uncounted()
	}
	spans := streamspan.Settings{
		Service: r.cfg.ServiceName, Latency: r.cfg.latency(), Rules: rules, Logger: r.settings.Logger, Selection: selection,
	}
	r.ingester.makers.New = func() any { return streamspan.New(&spans) }
}

// sendTraces makes the receiver send spans.
func (r *tokenStreamReceiver) sendTraces(next consumer.Traces) {
	r.ingester.next = next
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

		OpenStreams:        func() []inprocess.VisitOpenStreams { return []inprocess.VisitOpenStreams{r.visitOpen} },
		MaxSeriesPerClient: httpguard.ShareOf(config.Shared.Series.MaxSeries, r.cfg.MaxSharePerClient),
	})
	if err != nil {
		return err
	}
	r.publisher = publisher
	r.ingester.series = r.newRecorder(publisher.Keeper, time.Now)
	var breaches func(*assembly.Finished) bool
	if r.cfg.Spans.Breached && r.rules.Any() {
		breaches = r.ingester.series.Breaches
	}
	r.ingester.selection, err = streamspan.NewSelection(r.cfg.Spans.Share, breaches)
	if err != nil {
		return fmt.Errorf("spans::share: %w", err)
	}
	r.annotateSpans(r.ingester.selection)
	return nil
}

// newRecorder returns a recorder of the streams that the receiver finishes.
func (r *tokenStreamReceiver) newRecorder(keeper streamseries.Keeper, now func() time.Time) *streamseries.Recorder {
	return streamseries.New(&streamseries.Settings{
		Service: r.cfg.ServiceName, Latency: r.cfg.latency(), Rules: r.rules, Series: r.cfg.series(), Keeper: keeper,
		Store: r.ingester.store, Reporter: r.ingester.reporter, Logger: r.settings.Logger, Now: now,
	})
}

// take returns a request from the pool.
func (r *tokenStreamReceiver) take(report *receiverhelper.ObsReport, byEvent bool, applied *answer) *request {
	req := r.requests.Get().(*request)
	req.reset(report, byEvent, applied)
	return req
}

// put returns a request to the pool.
func (r *tokenStreamReceiver) put(req *request) {
	req.applied = nil
	req.memory.free()
	r.requests.Put(req)
}

// largeMessage is the size in bytes from which messages wait for a CPU before they are
// decoded. If all were decoded at the same time, each would get a part of the memory that
// it needs, and all would be refused.
const largeMessage = 64 << 10

// decode reads a message into the batch of a request.
func (r *tokenStreamReceiver) decode(req *request, message []byte, read func(*request, []byte) error) error {
	if len(message) >= largeMessage {
		r.decoding <- struct{}{}
		defer func() { <-r.decoding }()
	}
	return read(req, message)
}

// serve runs a server until it is stopped.
func (r *tokenStreamReceiver) serve(host component.Host, name string, listener net.Listener, serve func(net.Listener) error, stopped error) {
	r.settings.Logger.Info("starting "+name+" server", zap.String("endpoint", listener.Addr().String()))
	r.running.Go(func() {
		if err := serve(listener); err != nil && !errors.Is(err, stopped) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
}
