// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExampleCanary_EvidenceBeginsWithTheFirstQuestionAndSurvivesARestart(t *testing.T) {
	t.Parallel()
	exampleEnvironment(t)
	setenv(t, "STORAGE_DIRECTORY", t.TempDir())
	c := startCollector(t, example(t, "canary/collector.yaml"))
	const pair = "compare?dimension=service.version&baseline=v1&candidate=v2&slo=all"
	var first, again struct {
		Verdict, Reason, Hint string
		Since                 float64
	}
	c.askPage(t, pair, &first)
	require.Equal(t, "undecided", first.Verdict)
	require.Equal(t, "too_few", first.Reason)
	require.Equal(t, "neither arm has a request in a window that is closed: windows close 2 minutes after their end, and the Collector must receive both arms", first.Hint)
	require.Contains(t, string(get(t, c.metricsURL(), "text/plain")),
		`tokenpulse_compare_verdict{baseline="engine",candidate="engine-canary",dimension="k8s.deployment.name",slo="all",verdict="undecided"} 1`)

	c.stop(t)
	c = c.again(t)
	c.askPage(t, pair, &again)
	require.Equal(t, first, again)
	c.askPage(t, pair+"&since=now", &again)
	require.Greater(t, again.Since, first.Since)

	for query, remedy := range map[string]string{
		"compare?dimension=pod&baseline=v1&candidate=v2&slo=all": "use one of `dimensions`: gen_ai.request.model, service.version, k8s.deployment.name",
		fmt.Sprintf("%s&since=%.0f", pair, first.Since-60):       "leave `since` out, or give `now` to begin anew",
	} {
		response, err := http.Get(c.pageURL("api/v1/" + query))
		require.NoError(t, err)
		var answer struct{ Error struct{ Remedy string } }
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusBadRequest, response.StatusCode, query)
		require.Equal(t, remedy, answer.Error.Remedy, query)
	}
}
