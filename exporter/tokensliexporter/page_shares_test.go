// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// clientFrom returns a client with an address of its own. Its requests end after a minute.
func clientFrom(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// status returns the status of an answer, and its body.
func status(client *http.Client, method, url string) (int, string, error) {
	r, err := http.NewRequest(method, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// A client with 150 connections holds 65 of the 128 places, until less than half is free. The checks of a rollout tool
// come from elsewhere, and each has a place.
func TestCompare_IsAnsweredBesideAClientWithManyConnections(t *testing.T) {
	e, telemetry := unstarted(t, func(c *Config) { c.Server.NetAddr.Endpoint = testenv.FreeAddress(t) })
	release := make(chan struct{})
	e.live.page.Now = func() time.Time { // no answer is computed before
		<-release
		return time.Now()
	}
	e.scrapeTime = time.Hour // of a response
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	api := "http://" + e.config.Server.NetAddr.Endpoint + "/api/v1/"

	greedy := clientFrom(t, "127.0.0.1")
	statuses := make(chan int, 150)
	var group sync.WaitGroup
	for i := range 150 {
		group.Go(func() {
			query := url.Values{"where": {fmt.Sprint("gen_ai.request.model=m", i)}}
			code, answer, err := status(greedy, http.MethodGet, api+"trends?"+query.Encode())
			if err != nil || code != http.StatusOK && !strings.Contains(answer, "raise max_share_per_client") {
				t.Errorf("%d %s %v", code, answer, err)
			}
			statuses <- code
		})
	}
	for range 85 {
		require.Equal(t, http.StatusServiceUnavailable, <-statuses)
	}

	rollout := clientFrom(t, "127.0.0.2")
	pair := url.Values{"dimension": {"gen_ai.request.model"}, "baseline": {"a"}, "candidate": {"b"}, "slo": {"all"}}
	checks := make(chan int, 13)
	for i := range 13 { // a tenth of the places
		group.Go(func() {
			method, want := http.MethodPost, []int{http.StatusOK, http.StatusCreated}
			if i%2 == 1 {
				method, want = http.MethodDelete, []int{http.StatusNoContent, http.StatusNotFound}
			}
			code, answer, err := status(rollout, method, api+"compare?"+pair.Encode())
			if err != nil || !slices.Contains(want, code) {
				t.Errorf("%s: %d %s %v", method, code, answer, err)
			}
			checks <- code
		})
	}
	require.Eventually(t, func() bool { return e.live.page.Requests.Held() == 65+13 }, time.Minute, time.Millisecond)
	code, answer, err := status(rollout, http.MethodPost, api+"compare?"+pair.Encode())
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, code, "a client has a tenth")
	require.Contains(t, answer, "raise max_share_per_client")

	close(release)
	group.Wait()
	require.Zero(t, e.live.page.Requests.Held())
	require.Equal(t, map[string]int64{"max_share_per_client": 86}, refusals(t, telemetry))
	require.NoError(t, e.Shutdown(t.Context()))
}

func TestRequests_AreRefusedWhileAllPlacesAreTaken(t *testing.T) {
	e, telemetry := unstarted(t, func(c *Config) { c.MaxSharePerClient = 1 })
	for range 128 {
		require.Equal(t, httpguard.Accepted, e.live.page.Requests.Take(httpguard.Client{}))
	}
	w := httptest.NewRecorder()
	e.live.page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/now", http.NoBody))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "128 requests wait for an answer already")
	require.Equal(t, map[string]int64{"requests": 1}, refusals(t, telemetry))
}
