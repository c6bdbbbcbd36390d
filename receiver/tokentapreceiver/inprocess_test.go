// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

func TestInProcess_ReportsExchangesInFlightFromStartToShutdown(t *testing.T) {
	registered := func() int { return len(inprocess.OpenStreams.All()) }
	reported := func() (sum int64) {
		for _, visit := range inprocess.OpenStreams.All() {
			visit(new(spanreader.Dimensions), func(*inprocess.OpenStream) { sum++ })
		}
		return sum
	}
	others, otherStreams := registered(), reported()
	asked := make(chan struct{})
	released, release := context.WithCancel(t.Context())
	defer release()
	r := start(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-released.Done()
		w.WriteHeader(http.StatusOK)
	})
	require.Equal(t, 1, registered()-others)
	require.Zero(t, reported()-otherStreams)

	const exchanges = 3
	answered := make(chan error, exchanges)
	for range exchanges {
		go func() {
			response, err := http.Post(r.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true}`))
			if err == nil {
				err = response.Body.Close()
			}
			answered <- err
		}()
		<-asked
	}
	require.Eventually(t, func() bool {
		streams := reported()
		return streams-otherStreams == exchanges
	}, time.Minute, time.Millisecond, "the tap has seen the ends of the requests")
	release()
	for range exchanges {
		require.NoError(t, <-answered)
	}
	require.Eventually(t, func() bool {
		return reported() == otherStreams
	}, time.Minute, time.Millisecond, "the exchanges have ended")

	endpoint := inprocess.Endpoint{Receiver: "token_tap", URL: strings.Replace(r.url, "127.0.0.1", "localhost", 1) + "/v1/chat/completions"}
	require.Contains(t, slices.Concat(inprocess.Endpoints.All()...), endpoint)
	require.NoError(t, r.receiver.Shutdown(t.Context()))
	require.Equal(t, others, registered())
	require.NotContains(t, slices.Concat(inprocess.Endpoints.All()...), endpoint)
}
