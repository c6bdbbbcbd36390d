// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// newServed returns an exporter that was not started, with series of about 90 kB of text.
func newServed(t *testing.T, series int, change func(*Config)) *tokenSLI {
	t.Helper()
	e, _ := unstarted(t, func(c *Config) {
		c.Server.NetAddr.Endpoint = testenv.FreeAddress(t)
		c.Shared.Objectives = []keeper.Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}}
		if change != nil {
			change(c)
		}
	})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range series {
		span := typicalSpan(random, fmt.Sprint("model-", i))
		span["tokenpulse.slo.breached"] = []any{"tpot"}
		require.NoError(t, e.consume(t.Context(), batch(span)))
	}
	return e
}

// Scrapes at once share a rendering for each variant.
func TestScrape_ConcurrentScrapesRenderAFewTimes(t *testing.T) {
	e := newServed(t, 3, nil)
	e.scrapeTime = time.Minute // the race detector slows encoders down
	e.config.MaxSharePerClient = 1
	const scrapes = 50
	render, rendered, arrived := e.renderings.render, atomic.Int64{}, atomic.Int64{}
	e.renderings.render = func(v variant, unused func() bool) (*exposition.Body, error) {
		rendered.Add(1)
		for arrived.Load() < scrapes {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond) // the last ones join one that waits meanwhile
		return render(v, unused)
	}
	handler := e.handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	var group sync.WaitGroup
	for i := range scrapes {
		group.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+metricsPath, http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Accept", []string{text, openMetrics, protobuf}[i%3])
			response, err := server.Client().Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			n, err := io.Copy(io.Discard, response.Body)
			if err != nil || response.StatusCode != http.StatusOK || n < 10_000 {
				t.Errorf("status %d, %d bytes, %v", response.StatusCode, n, err)
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, rendered.Load(), int64(4), "the first, and one for each format")
	require.NoError(t, e.Shutdown(t.Context()))
}

// slowReader sends a request and reads nothing of its response, which does not fit into
// the buffers of the connection.
func slowReader(t *testing.T, address string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { connection.Close() })
	require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", metricsPath)
	require.NoError(t, err)
	_, err = io.ReadFull(connection, make([]byte, 12)) // the response begins
	require.NoError(t, err)
}

func TestScrape_SlowReadersDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	e := newServed(t, 200, nil)
	e.scrapeTime = time.Hour // the scrapes do not end by themselves
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for range 4 {
		slowReader(t, e.config.Server.NetAddr.Endpoint)
	}
	response, err := http.Get("http://" + e.config.Server.NetAddr.Endpoint + metricsPath)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	require.NoError(t, e.Shutdown(ctx))
}

// A client whose responses nobody reads holds no more than its share.
func TestScrape_OneClientLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	e := newServed(t, 200, nil)
	e.scrapeTime = time.Hour // the scrapes do not end by themselves
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for range 33 { // less than half is free
		slowReader(t, e.config.Server.NetAddr.Endpoint)
	}
	response, err := http.Get("http://" + e.config.Server.NetAddr.Endpoint + metricsPath)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Contains(t, string(body), "raise max_share_per_client")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	require.NoError(t, e.Shutdown(ctx))
}

func TestScrape_SlowReadersAreCutOff(t *testing.T) {
	t.Parallel()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	e := newServed(t, 200, nil)
	e.scrapeTime = 3 * time.Second // to gather takes a second on a busy machine with the race detector
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	slowReader(t, e.config.Server.NetAddr.Endpoint)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, e.Shutdown(ctx), "the server ends the scrape by itself")
}

func TestScrapeTime_IsLimitedByTheConfiguration(t *testing.T) {
	config := createDefaultConfig().(*Config)
	require.Equal(t, 10*time.Second, scrapeTime(config))
	config.Server.WriteTimeout = 0
	require.Equal(t, 10*time.Second, scrapeTime(config))
	config.Server.WriteTimeout = time.Second
	require.Equal(t, time.Second, scrapeTime(config))
}

// watchingStorage calls saving at each save, with the name of the client that saves.
type watchingStorage struct {
	component.Component
	saving func(name string)
}

func (s *watchingStorage) GetClient(_ context.Context, _ component.Kind, _ component.ID, name string) (storage.Client, error) {
	return &watchingClient{storage: s, name: name}, nil
}

type watchingClient struct {
	storage.Client
	storage *watchingStorage
	name    string
}

func (c *watchingClient) Batch(_ context.Context, operations ...*storage.Operation) error {
	if operations[0].Type == storage.Set {
		c.storage.saving(c.name)
	}
	return nil
}

func (*watchingClient) Close(context.Context) error { return nil }

// A reader of /metrics must not delay the save, nor the shutdown beyond its deadline.
func TestShutdown_SavesBudgetsBeforeItWaitsForScrapes(t *testing.T) {
	t.Parallel()
	id := storagetest.FileStorage
	var mu sync.Mutex // saves run in a worker, and on a slow machine before the shutdown, too
	saved := map[string]bool{}
	e := newServed(t, 200, func(c *Config) { c.Shared.StorageID = &id })
	e.scrapeTime = time.Hour // the scrape does not end by itself
	require.NoError(t, e.Start(t.Context(), storagetest.Host{id: &watchingStorage{saving: func(name string) {
		connection, err := net.Dial("tcp", e.config.Server.NetAddr.Endpoint)
		if err != nil {
			t.Errorf("the server stopped before the save: %v", err)
			return
		}
		connection.Close()
		mu.Lock()
		defer mu.Unlock()
		saved[name] = true
	}}}))
	slowReader(t, e.config.Server.NetAddr.Endpoint)

	mu.Lock()
	clear(saved)
	mu.Unlock()
	require.NoError(t, e.consume(t.Context(), batch(with(map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}))), "there is something to save")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, e.Shutdown(ctx), "the scrape is cut off")
	require.NoError(t, ctx.Err(), "the shutdown must end before its deadline")
	require.Equal(t, map[string]bool{"": true, "history": true}, saved, "the error budgets and the history")
}

// After a failed start the storage is free for the next try.
func TestStart_ClosesTheStorageIfThePortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	host, id := storagetest.NewHost(t), storagetest.FileStorage
	e := newServed(t, 1, func(c *Config) {
		c.Shared.StorageID = &id
		c.Server.NetAddr.Endpoint = taken.Addr().String()
	})
	require.ErrorContains(t, e.Start(t.Context(), host), "address already in use")
	again := newServed(t, 1, func(c *Config) { c.Shared.StorageID = &id })
	require.NoError(t, again.Start(t.Context(), host))
	require.NoError(t, again.Shutdown(t.Context()))
	require.NoError(t, e.Shutdown(t.Context()), "after a failed start")
}
