// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

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

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper"
)

// maxConcurrentScrapes limits the memory of responses in progress. Further scrapes are
// answered with 503.
const maxConcurrentScrapes = 4

// tokenSLI aggregates spans into series and serves them to Prometheus.
type tokenSLI struct {
	config    *Config
	telemetry component.TelemetrySettings
	keeper    *keeper.Keeper
	gatherer  *gatherer

	// Set by start.
	server  *http.Server
	serving sync.WaitGroup
}

func newTokenSLI(set exporter.Settings, config *Config) (*tokenSLI, error) {
	k, err := keeper.New(keeper.Settings{
		Config:    &config.Shared,
		Telemetry: set.TelemetrySettings,
		Component: set.ID,
		Kind:      component.KindExporter,
		Output:    "scrape",
		Engine:    series.NewEngine(config.options()),
		Interval:  roundInterval(config.Shared.Series.SeriesExpiration),
		Now:       time.Now,
	})
	if err != nil {
		return nil, err
	}
	gatherer, err := newGatherer(k, config)
	if err != nil {
		return nil, err
	}
	return &tokenSLI{config: config, telemetry: set.TelemetrySettings, keeper: k, gatherer: gatherer}, nil
}

// maxRoundInterval limits the time between two saves of the error budgets.
const maxRoundInterval = 5 * time.Second

// roundInterval returns the time between two rounds: no series outlives its expiration
// by more than a quarter.
func roundInterval(expiration time.Duration) time.Duration {
	if expiration == 0 {
		return maxRoundInterval
	}
	return min(maxRoundInterval, expiration/4)
}

func (e *tokenSLI) start(ctx context.Context, host component.Host) error {
	if _, err := e.keeper.Start(ctx, host); err != nil {
		return err
	}
	listener, err := e.config.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	e.server, err = e.config.Server.ToServer(ctx, host.GetExtensions(), e.telemetry, e.handler())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	e.telemetry.Logger.Info("Serving metrics", zap.Stringer("address", listener.Addr()), zap.String("path", metricsPath))
	e.keeper.Run()
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
	e.keeper.Record(ctx, traces)
	return nil
}

// shutdown waits for the scrapes in progress, as long as ctx allows.
func (e *tokenSLI) shutdown(ctx context.Context) error {
	var err error
	if e.server != nil {
		if err = e.server.Shutdown(ctx); err != nil {
			err = errors.Join(err, e.server.Close())
		}
	}
	e.serving.Wait()
	return errors.Join(err, e.keeper.Shutdown(ctx))
}
