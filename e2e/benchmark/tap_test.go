// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantile_NearestRank(t *testing.T) {
	require.Equal(t, 2.0, quantile([]float64{4, 1, 3, 2}, 0.5))
	require.Equal(t, 4.0, quantile([]float64{4, 1, 3, 2}, 0.99))
	require.Equal(t, 1.0, quantile([]float64{1}, 0.5))
}

// slowly delays each answer, and each write of it.
type slowly struct {
	http.ResponseWriter
	by time.Duration
}

func (s slowly) Write(p []byte) (int, error) {
	time.Sleep(s.by)
	return s.ResponseWriter.Write(p)
}

func (s slowly) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// A proxy that delays the request and each chunk by a known time must be measured as slow
// as it is, and every chunk must count.
func TestStreamer_MeasuresTheDelayOfAProxy(t *testing.T) {
	const chunks, perChunk, perRequest = 10, 20 * time.Millisecond, 50 * time.Millisecond
	upstream := httptest.NewServer(http.HandlerFunc(answerWithStream))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(perRequest)
		proxy.ServeHTTP(slowly{w, perChunk}, r)
	}))
	defer slow.Close()
	s := streamer{url: slow.URL + streamPath + "?chunks=10&every=40ms", from: time.Now(), to: time.Now().Add(time.Hour)}
	var sample tapSample
	require.NoError(t, s.read(t.Context(), &sample))
	require.Len(t, sample.chunk, chunks)
	require.Len(t, sample.first, 1)
	for _, seconds := range sample.chunk {
		require.GreaterOrEqual(t, seconds, perChunk.Seconds())
	}
	require.GreaterOrEqual(t, sample.first[0], (perRequest + perChunk).Seconds())

	s.from = time.Now().Add(time.Hour) // during the warm-up
	require.NoError(t, s.read(t.Context(), &sample))
	require.Len(t, sample.chunk, chunks)
}
