// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/page"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// live is what the live page needs: the history of the series, the slowest requests, and the
// page itself.
type live struct {
	history    *history.Store
	slowest    *slowest.Store
	thresholds page.Thresholds
	page       *page.Page    // set by open
	store      *historyStore // set by start

	stop    context.CancelFunc // set by run
	stopped sync.WaitGroup
}

// newLive returns nil if the page is off.
func newLive(config *Config) *live {
	if !config.Page.Enabled {
		return nil
	}
	return &live{
		history: history.New(config.History.MaxMemoryMiB << 20),
		slowest: slowest.New(slices.Index(config.Shared.Series.Dimensions.Names(), names.GenAIRequestModel)),
	}
}

// open makes the page.
func (l *live) open(set exporter.Settings, config *Config, k *keeper.Keeper, compared *compare.Store, learned *capacities) {
	var capacities *capacity.Table
	if learned != nil {
		capacities = learned.Table
	}
	l.page = page.New(page.Options{
		Version:      set.BuildInfo.Version,
		Dimensions:   config.Shared.Series.Dimensions,
		Objectives:   config.Shared.SLOObjectives(),
		MaxSeries:    config.Shared.Series.MaxSeries,
		TraceLink:    config.Page.TraceLink,
		Engine:       k.Engine,
		Tracker:      k.Tracker,
		History:      l.history,
		Slowest:      l.slowest,
		Thresholds:   &l.thresholds,
		Comparisons:  compared,
		Capacities:   capacities,
		OpenStreams:  &inprocess.OpenStreams,
		Endpoints:    &inprocess.Endpoints,
		SLOs:         &inprocess.SLOs,
		Doubts:       &inprocess.Doubts,
		Engines:      engines.Statuses,
		EventStreams: httpguard.NewShares(page.MaxEventStreams, config.MaxSharePerClient),
		Requests:     httpguard.NewShares(page.MaxWaiting, config.MaxSharePerClient),
		Now:          time.Now,
	})
}

type historyStore = storageclient.Snapshots[history.Span, history.Version]

// savedHistory returns the slots of a history for a historyStore.
func savedHistory(h *history.Store, dimensions series.Dimensions) storageclient.Values[history.Span, history.Version] {
	now := time.Now()
	return storageclient.Values[history.Span, history.Version]{
		Name: "history", Keys: "slots", Dimensions: dimensions.Identities(),
		Entry:      func(span history.Span) string { return fmt.Sprintf("slot/%d/%d", span.Start, span.Width) },
		Saved:      h.Saved,
		Restore:    func(span history.Span, encoded []byte) error { return h.Restore(span, encoded, len(dimensions), now) },
		Unreadable: "cannot restore a part of the live page's history",
	}
}

// start restores the history.
func (l *live) start(ctx context.Context, host component.Host, e *tokenSLI) (err error) {
	shared := &e.config.Shared
	owner := storageclient.Owner{Kind: component.KindExporter, ID: e.id, Name: "history"}
	l.store, _, err = storageclient.OpenSnapshots(ctx, host, shared.StorageID, owner, savedHistory(l.history, shared.Series.Dimensions), e.telemetry.Logger)
	return err
}

// Save implements keeper.Saver.
func (l *live) Save(ctx context.Context) error {
	if l.store != nil {
		l.page.Engine.Fold(time.Now())
	}
	return l.store.Save(ctx, nil)
}

// Close implements keeper.Saver.
func (l *live) Close(ctx context.Context) error {
	l.page.Engine.Fold(time.Now())
	return l.store.Close(ctx, nil)
}

// maintainInterval is the time between two rounds of maintenance.
const maintainInterval = series.HistorySlot

// run starts the maintenance of the history and of the slowest requests.
func (l *live) run() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.stopped.Go(func() {
		ticker := time.NewTicker(maintainInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				l.history.Maintain(now)
				l.slowest.Maintain(now)
			}
		}
	})
}

// end ends the event streams and the maintenance.
func (l *live) end() {
	l.page.Close()
	if l.stop != nil {
		l.stop()
		l.stopped.Wait()
	}
}

// watch adds a request to the slowest ones if it is one of them. A nil one does nothing.
func (l *live) watch(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
	if l == nil {
		return
	}
	if l.slowest.Accepts(r) {
		l.slowest.Add(r, spanreader.Timeline(span), spanreader.Facts(r.Vantage, span, resource))
	}
	l.thresholds.Learn(r, span)
}
