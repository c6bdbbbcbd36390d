// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

// Package fleet tests several Collectors behind a gateway or Kafka.
package fleet

import (
	"fmt"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
)

// A worker is killed while requests arrive. Each batch is acknowledged after workers
// counted its requests, so:
//   - requests that the dead worker counted without an acknowledgement are sent again and
//     counted twice: at most those in flight when it was killed. Those that other workers
//     counted are recognised there;
//   - requests that it counted after Prometheus' last scrape of it are lost: at most those
//     acknowledged since that scrape.
func TestFleetExampleBalanced_KilledWorkerCostsAtMostWhatWasInFlightOrNotScraped(t *testing.T) {
	f := startFleet(t, 3)
	server := prometheusOf(t, map[string][]*collector.Collector{"fleet": slices.Clone(f.workers)})
	load := startFleetLoad(t, f.gateway.HTTP)
	server.WaitUntil(t, `count(sum by (instance) (tokenpulse_requests_total) > 50) == 3`)

	before := time.Now()
	countedBefore := requests(t, f.workers[0])
	victim := f.kill(t)
	after := time.Now()

	// The gateway still has the dead worker in its list. The others go on.
	for _, w := range f.workers {
		counted := requests(t, w)
		require.Eventually(t, func() bool { return requests(t, w) > counted },
			collector.Patience, 50*time.Millisecond, "a worker does not go on after another one was killed")
	}
	// Long enough that a gateway that acknowledges before the workers do, as with a
	// queue, loses more than Prometheus does.
	time.Sleep(time.Second)
	f.writeList(t)
	f.gateway.Signal(syscall.SIGHUP)
	load.waitFor(t, 200)
	sent := load.finish(t)

	goneOn := 0
	for _, w := range f.workers {
		goneOn += requests(t, w)
	}
	inFlight := min(load.inFlight(before, after), mostInFlight)
	// The test's own scrape, just before the kill, leaves less room than Prometheus'.
	lastCounted, lastScrape := lastScraped(t, server, victim)
	for _, last := range []struct {
		by      string
		counted int
		at      time.Time
	}{{"Prometheus", lastCounted, lastScrape}, {"the test", countedBefore, before}} {
		counted, notScraped := last.counted+goneOn, load.acknowledged(last.at, after)
		t.Logf("scraped by %s: %d requests, counted %d; in flight when the worker was killed: %d; acknowledged since its last scrape: %d",
			last.by, sent, counted, inFlight, notScraped)
		require.Positive(t, last.counted)
		require.LessOrEqual(t, counted, sent+inFlight, "requests are counted twice")
		require.GreaterOrEqual(t, counted, sent-notScraped, "acknowledged requests are lost")
	}
}

// lastScraped returns what Prometheus knows of a worker that is gone: the requests that
// it had counted, and the time of the last scrape.
func lastScraped(t *testing.T, server *promserver.Server, worker *collector.Collector) (requests int, at time.Time) {
	t.Helper()
	series := fmt.Sprintf(`tokenpulse_requests_total{instance=%q}`, worker.Metrics)
	samples := history(t, server, series+"[10m]")
	require.Len(t, samples, 1)
	// Prometheus aligns the times of scrapes by up to 2 ms.
	at = time.UnixMilli(int64(samples[0].last * 1e3)).Add(-5 * time.Millisecond)
	return int(server.Query(t, "last_over_time("+series+"[10m])")), at
}

// past is a series with the Unix times of its first and last sample.
type past struct {
	labels      map[string]string
	first, last float64
}

// history returns the series of a range query's result.
func history(t *testing.T, p *promserver.Server, query string) []past {
	t.Helper()
	var all []past
	for _, series := range p.Matrix(t, "query", url.Values{"query": {query}}) {
		first, last := series.Values[0], series.Values[len(series.Values)-1]
		all = append(all, past{series.Metric, first[0].(float64), last[0].(float64)})
	}
	return all
}
