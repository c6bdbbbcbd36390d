// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/readiness"
)

// tokenTapReceiver forwards exchanges between clients and LLM services, and sends a span of
// each to a traces pipeline.
type tokenTapReceiver struct {
	cfg       *Config
	settings  receiver.Settings
	telemetry *metadata.TelemetryBuilder
	routes    routes
	delivery  *delivery
	logger    *zap.Logger // once a minute per message
	untracked *untracked
	stored    *dedup.Set // the stored responses that counted
	doubts    *diagnostics.Doubts
	open      atomic.Int64 // observed exchanges
	decodings sync.Map     // those exchanges, from *decoding to nothing
	memory    *llmstream.Memory
	engines   *engines.Watch // nil without liveness
	readiness *readiness.Server

	server   *http.Server
	bodies   httpguard.Bodies
	browsers httpguard.Browsers
	address  net.Addr
	handling sync.RWMutex // handlers hold the read lock
	cutOff   context.CancelFunc
	closing  atomic.Bool
	serving  sync.WaitGroup
}

func newReceiver(cfg *Config, set receiver.Settings, next consumer.Traces) (*tokenTapReceiver, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	deliver, err := newDelivery(cfg, set, telemetry, next)
	if err != nil {
		return nil, err
	}
	return &tokenTapReceiver{
		cfg: cfg, settings: set, telemetry: telemetry, delivery: deliver, logger: diagnostics.OnceAMinute(set.Logger),
		untracked: newUntracked(set.Logger, time.Now),
		stored:    newStored(time.Now()),
		doubts:    diagnostics.NewDoubts(set.Logger, time.Now),
		memory:    llmstream.NewMemory(int64(cfg.MaxMemoryMiB) << 20),
	}, nil
}

// Start starts the server and the delivery of spans.
func (r *tokenTapReceiver) Start(ctx context.Context, host component.Host) error {
	err := r.observe()
	if err == nil {
		r.routes, err = newRoutes(ctx, r.cfg, host.GetExtensions(), r.settings.TelemetrySettings)
	}
	if err == nil {
		err = r.watchEngines(ctx, host)
	}
	if err == nil {
		err = r.serveReadiness(ctx, host)
	}
	if err == nil {
		r.delivery.start()
		err = settings.StartError("", r.serve(ctx, host))
	}
	if err != nil {
		// Stop whatever did start.
		return errors.Join(err, r.Shutdown(ctx))
	}
	inprocess.OpenStreams.Set(r, r.visitOpen)
	inprocess.Endpoints.Set(r, r.endpoints())
	inprocess.Doubts.Set(r, r.doubts)
	inprocess.ReportIdleExporters(r.settings.Logger)
	return nil
}

func (r *tokenTapReceiver) serve(ctx context.Context, host component.Host) error {
	cfg := r.cfg.Server
	if cfg.MaxRequestBodySize <= 0 {
		cfg.MaxRequestBodySize = math.MaxInt64 // instead of 20 MiB
	}
	server, err := cfg.ToServer(ctx, host.GetExtensions(), r.settings.TelemetrySettings, http.HandlerFunc(r.handle))
	if err != nil {
		return err
	}
	base, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	server.BaseContext = func(net.Listener) context.Context { return base }
	server.DisableGeneralOptionsHandler = true
	r.bodies = httpguard.LimitBodies(server)
	if !cfg.TLS.HasValue() {
		server.Protocols = &http.Protocols{}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	listener, err := cfg.ToListener(ctx)
	if err != nil {
		cutOff()
		return err
	}
	r.server, r.address, r.cutOff = server, listener.Addr(), cutOff
	r.browsers = httpguard.NewBrowsers(&r.cfg.Server, r.address, r.cfg.AllowedHosts)
	r.settings.Logger.Info("starting HTTP server", zap.Stringer("endpoint", r.address))
	r.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// observe registers the gauges.
func (r *tokenTapReceiver) observe() error {
	return errors.Join(
		r.telemetry.RegisterReceiverTokenTapMemoryHeldCallback(diagnostics.Gauge(r.memory.Held)),
		r.telemetry.RegisterReceiverTokenTapMemoryLimitCallback(diagnostics.Gauge(func() int64 { return int64(r.cfg.MaxMemoryMiB) << 20 })),
		r.telemetry.RegisterReceiverTokenTapStreamsOpenCallback(diagnostics.Gauge(r.open.Load)),
		r.telemetry.RegisterReceiverTokenTapStreamsLimitCallback(diagnostics.Gauge(func() int64 { return int64(r.cfg.MaxStreams) })),
		r.telemetry.RegisterReceiverTokenTapQueueSizeCallback(diagnostics.Gauge(func() int64 { return int64(len(r.delivery.queue)) })),
		r.telemetry.RegisterReceiverTokenTapQueueCapacityCallback(diagnostics.Gauge(func() int64 { return int64(cap(r.delivery.queue)) })),
	)
}

// exchangeTimeout limits exchanges in progress at shutdown. Answers may take minutes.
const exchangeTimeout = 5 * time.Second

// Shutdown lets exchanges in progress finish for a short time and cuts the others, whose
// spans are incomplete. Queued spans are sent until ctx ends.
func (r *tokenTapReceiver) Shutdown(ctx context.Context) error {
	err := errors.Join(r.readiness.Shutdown(ctx), r.stopServer(ctx))
	r.serving.Wait()
	r.delivery.stop(ctx)
	if r.engines != nil {
		err = errors.Join(err, r.engines.Shutdown(ctx))
	}
	r.routes.closeIdle()
	inprocess.OpenStreams.Remove(r)
	inprocess.Endpoints.Remove(r)
	inprocess.Doubts.Remove(r)
	r.telemetry.Shutdown()
	return err
}

func (r *tokenTapReceiver) stopServer(ctx context.Context) error {
	if r.server == nil {
		return nil
	}
	timeout := exchangeTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)/2) // the rest is for the queue
	}
	wait, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.server.Shutdown(wait)
	r.closing.Store(true)
	if wait.Err() != nil {
		err = nil
		r.settings.Logger.Warn("cut exchanges that did not finish before the shutdown timeout; their spans are incomplete")
	}
	r.cutOff() // also ends upgraded connections, which the server does not know
	err = errors.Join(err, r.server.Close())
	r.handling.Lock() // Close does not wait for handlers
	defer r.handling.Unlock()
	r.server = nil
	return err
}
