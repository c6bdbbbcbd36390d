// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// A client that breaks off a scrape, while the result is gathered or sent, leaves no
// goroutine behind and keeps no result.
func TestCanceledScrapes_LeaveNothingBehind(t *testing.T) {
	const scrapes = 50
	e := newServed(t, 20, nil)
	gather, gathering := e.gather, make(chan struct{}, 100*scrapes)
	e.gather = func() (exposition, error) {
		gathering <- struct{}{}
		time.Sleep(50 * time.Millisecond)
		return gather()
	}
	server := httptest.NewServer(e.handler())
	defer server.Close()
	before := goleak.IgnoreCurrent()
	client := &http.Client{Transport: new(http.Transport)}
	scrape := func(use func(cancel func(), response *http.Response), duringGather bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if duringGather {
			go func() {
				select {
				case <-gathering:
					cancel()
				case <-ctx.Done(): // it shared the gather of another scrape
				}
			}()
		}
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+metricsPath, http.NoBody)
		response, err := client.Do(request)
		if err != nil {
			return
		}
		use(cancel, response)
		_ = response.Body.Close()
	}
	var running sync.WaitGroup
	for i := range scrapes {
		running.Go(func() {
			scrape(func(cancel func(), response *http.Response) {
				_, _ = io.CopyN(io.Discard, response.Body, 1000)
				cancel()
			}, i%2 == 0)
		})
	}
	running.Wait()
	client.CloseIdleConnections()
	testenv.RequireNoLeak(t, before)

	require.NoError(t, e.consume(t.Context(), batch(typicalSpan(rand.New(rand.NewPCG(3, 4)), "model-afterwards"))))
	response, err := server.Client().Get(server.URL + metricsPath)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "model-afterwards", "the result is not one of a scrape that was broken off")
	require.NoError(t, e.Shutdown(t.Context()))
}
