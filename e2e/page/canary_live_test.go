// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build canary

package page

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/vllmfleet"
)

// Three services of a group serve for as long as their verdicts take, 12 requests/s each.
func TestKServeCanary_VerdictsOnLiveTraffic(t *testing.T) {
	c := startKServeExample(t, t.TempDir())
	status, _ := askKServe(t, c, http.MethodPost, "my-model-v3")
	require.Equal(t, http.StatusCreated, status)
	bad := map[string]float64{"my-model-v1": 0.1, "my-model-v2": 0.1, "my-model-v3": 0.4}
	fleets := map[string][]*vllmfleet.Fleet{}
	for service := range bad {
		for _, pod := range kservePods(t, service).Replicas {
			f := kservePods(t, service)
			f.Replicas = []string{pod}
			fleets[service] = append(fleets[service], f)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{"my-model-v2": "pass", "my-model-v3": "fail"}
	got := map[string]string{}
	began := time.Now()
	for tick := time.NewTicker(250 * time.Millisecond); len(got) < len(want) && time.Since(began) < 35*time.Minute; <-tick.C {
		for service, pods := range fleets {
			for _, pod := range pods {
				pod.At = time.Now().Add(-2 * time.Second) // each request takes so long
				pod.Serve(t, 250*time.Millisecond, 4, random.Float64() < bad[service])
			}
		}
		for candidate := range want {
			_, answer := askKServe(t, c, http.MethodGet, candidate)
			if answer.Verdict != "undecided" && got[candidate] == "" {
				got[candidate] = answer.Verdict
				t.Logf("%s: %s after %v: %s", candidate, answer.Verdict, time.Since(began).Round(time.Second), answer.Hint)
			}
		}
	}
	require.Equal(t, want, got)
}
