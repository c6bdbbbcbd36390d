// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// comparison is what the API says of a pair.
type comparison struct {
	Verdict, Reason, Hint string
	Since                 float64
	Error                 struct{ Message, Remedy string }
}

// comparePair sends a request about a pair.
func comparePair(t *testing.T, c *collector.Collector, method, query string) (status int, answer comparison) {
	t.Helper()
	status, body := send(t, method, c.PageURL("api/v1/compare?"+query))
	if len(body) > 0 {
		require.NoError(t, json.Unmarshal(body, &answer))
	}
	return status, answer
}

func send(t *testing.T, method, url string) (status int, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, body
}

func TestExampleCanary_PairsBeginWithPostSurviveARestartAndEndWithDelete(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	collector.Setenv(t, "STORAGE_DIRECTORY", t.TempDir())
	c := collector.Start(t, collector.Example(t, "canary/collector.yaml"))
	const pair = "dimension=service.version&baseline=v1&candidate=v2&slo=all"
	status, answer := comparePair(t, c, http.MethodGet, pair)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "begin it with POST and the same parameters, or enter it under `compare` of the configuration", answer.Error.Remedy)
	status, first := comparePair(t, c, http.MethodPost, pair)
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, "undecided", first.Verdict)
	require.Equal(t, "too_few", first.Reason)
	require.Equal(t, "neither arm has a request in a window that is closed: windows close 2 minutes after their end, and the Collector must receive both arms", first.Hint)
	require.Contains(t, string(collector.Get(t, c.MetricsURL(), "text/plain")),
		`tokenpulse_compare_verdict{baseline="engine",candidate="engine-canary",dimension="k8s.deployment.name",slo="all",verdict="undecided"} 1`)

	c.Stop(t)
	c = c.Again(t)
	status, again := comparePair(t, c, http.MethodGet, pair)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, first, again)
	status, _ = comparePair(t, c, http.MethodDelete, pair)
	require.Equal(t, http.StatusNoContent, status)
	c.Stop(t)
	c = c.Again(t)
	status, _ = comparePair(t, c, http.MethodGet, pair)
	require.Equal(t, http.StatusNotFound, status, "it ended before the restart")
	_, again = comparePair(t, c, http.MethodPost, pair)
	require.Greater(t, again.Since, first.Since)

	status, answer = comparePair(t, c, http.MethodPost, strings.ReplaceAll(pair, "service.version", "pod"))
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, "use one of `dimensions`: gen_ai.request.model, service.version, k8s.deployment.name", answer.Error.Remedy)
}
