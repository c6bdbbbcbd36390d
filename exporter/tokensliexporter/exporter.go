package tokensliexporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/budgetstore"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// maxConcurrentScrapes bounds the memory of answers that are being written. A
// scrape past it is told to come again.
const maxConcurrentScrapes = 4

// tokenSLI adds spans up to series, and serves these.
type tokenSLI struct {
	config    *Config
	id        component.ID
	settings  component.TelemetrySettings
	telemetry *selfTelemetry
	engine    *series.Engine
	gatherer  *gatherer

	// Set by start.
	budgets *budgetstore.Store
	server  *http.Server
	stop    context.CancelFunc // ends the upkeep
	atWork  sync.WaitGroup
}

func newTokenSLI(set exporter.Settings, config *Config) (*tokenSLI, error) {
	engine := series.NewEngine(config.options())
	gatherer, err := newGatherer(engine, config)
	if err != nil {
		return nil, err
	}
	telemetry, err := newSelfTelemetry(set.TelemetrySettings, engine, config.Series.MaxSeries)
	if err != nil {
		return nil, err
	}
	return &tokenSLI{config: config, id: set.ID, settings: set.TelemetrySettings, telemetry: telemetry, engine: engine, gatherer: gatherer}, nil
}

func (e *tokenSLI) start(ctx context.Context, host component.Host) error {
	if err := series.UndefinedObjectives(e.config.Objectives); err != nil {
		return err
	}
	var err error
	owner := budgetstore.Owner{Kind: component.KindExporter, ID: e.id}
	e.budgets, _, err = budgetstore.Open(ctx, host, e.config.StorageID, owner, e.engine, e.config.Series.Dimensions, e.settings.Logger)
	if err != nil {
		return err
	}
	listener, err := e.config.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	e.server, err = e.config.Server.ToServer(ctx, host.GetExtensions(), e.settings, e.handler())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	e.settings.Logger.Info("Serving metrics", zap.Stringer("address", listener.Addr()), zap.String("path", metricsPath))
	var upkeep context.Context
	upkeep, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.atWork.Go(func() { e.keepUp(upkeep) })
	e.atWork.Go(func() {
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
	tally := spanreader.Record(traces, e.engine, e.config.Series.Dimensions, time.Now())
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
	if e.stop != nil {
		e.stop()
	}
	e.atWork.Wait()
	if failed := e.budgets.Close(ctx, nil); failed != nil {
		err = errors.Join(err, fmt.Errorf("error budgets since the last save are lost: %w", failed))
	}
	e.budgets = nil
	e.telemetry.shutdown()
	return err
}
