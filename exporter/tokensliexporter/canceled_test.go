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

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// A client that breaks off a scrape, while the result is rendered or sent, leaves no
// goroutine behind and keeps no result.
func TestCanceledScrapes_LeaveNothingBehind(t *testing.T) {
	const scrapes = 50
	e := newServed(t, 20, nil)
	render, rendering := e.renderings.render, make(chan struct{}, 100*scrapes)
	e.renderings.render = func(v variant, unused func() bool) (*exposition.Body, error) {
		rendering <- struct{}{}
		time.Sleep(50 * time.Millisecond)
		return render(v, unused)
	}
	server := httptest.NewServer(e.handler())
	defer server.Close()
	before := goleak.IgnoreCurrent()
	client := &http.Client{Transport: new(http.Transport)}
	scrape := func(use func(cancel func(), response *http.Response), duringRendering bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if duringRendering {
			go func() {
				select {
				case <-rendering:
					cancel()
				case <-ctx.Done(): // it shared the rendering of another scrape
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
