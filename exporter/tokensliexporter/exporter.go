// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Limits of scrapes. Those in progress share renderings, so each costs little memory. Further ones are answered
// with 503.
const (
	maxConcurrentScrapes = 64
	maxScrapeTime        = 10 * time.Second
)

// tokenSLI aggregates spans, and metrics of other components, into series and serves them
// to Prometheus.
type tokenSLI struct {
	id        component.ID
	config    *Config
	telemetry component.TelemetrySettings
	// selfMetrics are those of the exporter itself.
	selfMetrics *metadata.TelemetryBuilder
	keeper      *keeper.Keeper
	gatherer    *gatherer
	renderings  *renderings
	compared    *comparisons
	capacities  *capacities // nil without `capacity`
	live        *live       // nil if the page is off
	// scrapeTime limits the time of a response.
	scrapeTime time.Duration

	// Set by start.
	server  *http.Server
	serving sync.WaitGroup
}

func newTokenSLI(set exporter.Settings, config *Config) (*tokenSLI, error) {
	options := config.options()
	settings := keeper.Settings{
		Config:    &config.Shared,
		Telemetry: set.TelemetrySettings,
		Component: set.ID,
		Kind:      component.KindExporter,
		Output:    "scrape",
		Points:    true,
		Interval:  roundInterval(config.Shared.Series.SeriesExpiration),
		Now:       time.Now,
	}
	compared, capacities, live := newComparisons(config), newCapacities(config), newLive(config)
	settings.WatchPoint, settings.Also = compared.Increase, []keeper.Saver{compared}
	if capacities != nil {
		settings.Also = append(settings.Also, capacities)
	}
	if live != nil {
		options.History, settings.Also = live.history, append(settings.Also, live)
	}
	settings.Watch = func(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
		compared.watch(r, span, resource)
		capacities.watch(r, span, resource)
		live.watch(r, span, resource)
	}
	settings.Engine = series.NewEngine(options)
	k, err := keeper.New(settings)
	if err != nil {
		return nil, err
	}
	gatherer, err := newGatherer(k, config, compared, capacities)
	if err != nil {
		return nil, err
	}
	if live != nil {
		live.open(set, config, k, compared.Store, capacities)
	}
	telemetry, err := newTelemetry(set, compared, capacities, live)
	if err != nil {
		return nil, err
	}
	return &tokenSLI{
		id: set.ID, config: config, telemetry: set.TelemetrySettings, keeper: k, compared: compared, capacities: capacities, live: live,
		selfMetrics: telemetry, gatherer: gatherer, renderings: newRenderings(gatherer.render, gatherer.company), scrapeTime: scrapeTime(config),
	}, nil
}

// scrapeTime returns the time that a response may take. `write_timeout` can lower it.
func scrapeTime(config *Config) time.Duration {
	if limit := config.Server.WriteTimeout; limit > 0 {
		return min(limit, maxScrapeTime)
	}
	return maxScrapeTime
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

// Start restores the error budgets and serves metrics.
func (e *tokenSLI) Start(ctx context.Context, host component.Host) error {
	if _, err := e.keeper.Start(ctx, host); err != nil {
		return err
	}
	err := e.compared.start(ctx, host, e.id, e.config, e.telemetry.Logger)
	if err == nil {
		err = e.capacities.start(ctx, host, e.id, e.config, e.telemetry.Logger)
	}
	if err == nil {
		err = e.startLive(ctx, host)
	}
	if err == nil {
		err = settings.StartError("", e.serve(ctx, host))
	}
	if err != nil {
		e.keeper.Shutdown(ctx) // closes the storage
		return err
	}
	e.keeper.Run()
	if e.live != nil {
		e.live.run()
	}
	return nil
}

func (e *tokenSLI) startLive(ctx context.Context, host component.Host) error {
	if e.live == nil {
		return nil
	}
	return e.live.start(ctx, host, e)
}

func (e *tokenSLI) serve(ctx context.Context, host component.Host) error {
	listener, err := e.config.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	browsers := httpguard.NewBrowsers(&e.config.Server, listener.Addr(), e.config.AllowedHosts)
	server, err := e.config.Server.ToServer(ctx, host.GetExtensions(), e.telemetry, browsers.Protect("token_sli", e.handler()))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	httpguard.LimitBodies(server)
	e.server = server
	e.telemetry.Logger.Info("serving metrics", zap.Stringer("address", listener.Addr()), zap.String("path", metricsPath))
	e.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

const metricsPath = "/metrics"

func (e *tokenSLI) handler() http.Handler {
	mux := http.NewServeMux()
	if e.live != nil {
		mux.Handle("/", e.live.page.Handler())
	} else {
		mux.HandleFunc("GET /{$}", links)
	}
	mux.Handle("GET "+metricsPath, e.shared(e.metrics()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client that reads slowly must not hold its response for long.
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(e.scrapeTime)); err != nil {
			e.telemetry.Logger.Debug("cannot set the write deadline of a response, so a slow client may hold it for long", zap.Error(err))
		}
		mux.ServeHTTP(w, r)
	})
}

// shared divides the scrapes among clients.
func (e *tokenSLI) shared(next http.Handler) http.Handler {
	scrapes := httpguard.NewShares(maxConcurrentScrapes, e.config.MaxSharePerClient)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := httpguard.ClientOf(r.Context())
		switch scrapes.Take(client) {
		case httpguard.Full:
			http.Error(w, fmt.Sprintf("token_sli: %d scrapes are in progress; scrape again later", maxConcurrentScrapes), http.StatusServiceUnavailable)
			return
		case httpguard.ShareFull:
			http.Error(w, "token_sli: this client has its share of scrapes in progress; scrape again later, or raise max_share_per_client", http.StatusServiceUnavailable)
			return
		}
		defer scrapes.Give(client)
		next.ServeHTTP(w, r)
	})
}

func (e *tokenSLI) consume(ctx context.Context, traces ptrace.Traces) error {
	e.keeper.Record(ctx, traces)
	return nil
}

func (e *tokenSLI) consumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	e.keeper.RecordMetrics(ctx, metrics)
	return nil
}

// Shutdown saves the error budgets before it waits for the scrapes in progress. No step
// takes longer than keeper.ShutdownStep allows.
func (e *tokenSLI) Shutdown(ctx context.Context) error {
	e.keeper.Stop(ctx)
	e.selfMetrics.Shutdown()
	if e.live != nil {
		e.live.end()
	}
	err := e.stopServing(ctx)
	e.keeper.Shutdown(ctx)
	return err
}

// stopServing ends the scrapes that do not end by themselves.
func (e *tokenSLI) stopServing(ctx context.Context) error {
	if e.server == nil {
		return nil
	}
	step, cancel := keeper.ShutdownStep(ctx)
	defer cancel()
	err := e.server.Shutdown(step)
	if step.Err() != nil { // which is no failure of the Collector
		e.telemetry.Logger.Warn("closed connections whose requests did not end before the shutdown timeout")
		err = e.server.Close()
	}
	e.serving.Wait()
	e.renderings.close()
	return err
}
