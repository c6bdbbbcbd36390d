package tokensliexporter

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/sli"
	"github.com/tokenpulse/tokenpulse/internal/sli/intake"
)

// maxConcurrentScrapes bounds the memory of answers that are being written. A
// scrape past it is told to come again.
const maxConcurrentScrapes = 4

// tokenSLI adds spans up to series, and serves these.
type tokenSLI struct {
	config    *Config
	settings  component.TelemetrySettings
	telemetry *selfTelemetry
	engine    *sli.Engine
	gatherer  *gatherer

	server  *http.Server
	serving sync.WaitGroup
}

func newTokenSLI(set exporter.Settings, config *Config) (*tokenSLI, error) {
	engine := sli.NewEngine(config.options())
	gatherer, err := newGatherer(engine, config)
	if err != nil {
		return nil, err
	}
	telemetry, err := newSelfTelemetry(set.TelemetrySettings, engine, config.Series.MaxSeries)
	if err != nil {
		return nil, err
	}
	return &tokenSLI{config: config, settings: set.TelemetrySettings, telemetry: telemetry, engine: engine, gatherer: gatherer}, nil
}

func (e *tokenSLI) start(ctx context.Context, host component.Host) error {
	listener, err := e.config.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	e.server, err = e.config.Server.ToServer(ctx, host.GetExtensions(), e.settings, e.handler())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	e.settings.Logger.Info("Serving metrics", zap.Stringer("address", listener.Addr()), zap.String("path", metricsPath))
	e.engine.Start(e.telemetry.expired)
	e.serving.Go(func() {
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

const metricsPath = "/metrics"

func (e *tokenSLI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(e.gatherer, promhttp.HandlerOpts{
		EnableOpenMetrics:                   true,
		EnableOpenMetricsTextCreatedSamples: true,
		MaxRequestsInFlight:                 maxConcurrentScrapes,
	}))
	return mux
}

func (e *tokenSLI) consume(ctx context.Context, traces ptrace.Traces) error {
	tally := intake.Record(traces, e.engine, e.config.Series.Dimensions, time.Now())
	e.telemetry.consumed(ctx, &tally)
	return nil
}

// shutdown lets a scrape that is being answered finish, as long as the context
// allows.
func (e *tokenSLI) shutdown(ctx context.Context) error {
	var err error
	if e.server != nil {
		if err = e.server.Shutdown(ctx); err != nil {
			err = errors.Join(err, e.server.Close())
		}
	}
	e.serving.Wait()
	e.engine.Shutdown()
	e.telemetry.shutdown()
	return err
}
