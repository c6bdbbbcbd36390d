// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
)

func TestInProcess_ReportsExchangesInFlightFromStartToShutdown(t *testing.T) {
	reported := func() (receivers int, sum int64) {
		all := inprocess.OpenStreams.All()
		for _, open := range all {
			sum += open()
		}
		return len(all), sum
	}
	others, otherStreams := reported()
	asked := make(chan struct{})
	released, release := context.WithCancel(t.Context())
	defer release()
	r := start(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-released.Done()
		w.WriteHeader(http.StatusOK)
	})
	receivers, streams := reported()
	require.Equal(t, 1, receivers-others)
	require.Zero(t, streams-otherStreams)

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
	_, streams = reported()
	require.EqualValues(t, exchanges, streams-otherStreams)
	release()
	for range exchanges {
		require.NoError(t, <-answered)
	}
	require.Eventually(t, func() bool {
		_, streams := reported()
		return streams == otherStreams
	}, time.Minute, time.Millisecond, "the exchanges have ended")

	require.NoError(t, r.receiver.Shutdown(t.Context()))
	receivers, _ = reported()
	require.Equal(t, others, receivers)
}
