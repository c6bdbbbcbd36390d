// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// withObjective sets an objective and a trace link.
func withObjective(c *Config) {
	c.Shared.Objectives = []keeper.Objective{{SLO: "chat-tpot", Objective: 0.75, Window: time.Hour}}
	c.Page.TraceLink = "https://traces.example/{trace_id}?span={span_id}"
}

// chunks returns a timeline of chunks at these offsets.
func chunks(at ...time.Duration) []byte {
	const start = int64(1_800_000_000_000_000_000)
	var t timeline.Timeline
	for _, offset := range at {
		t.Append(start+int64(offset), 1, timeline.Content)
	}
	return t.AppendBinary(nil, start)
}

// api sends a request to the API and returns the response and its body.
func (h *harness) api(t testing.TB, path string) (*http.Response, []byte) {
	t.Helper()
	response, body := h.get(t, "/api/v1/"+path)
	return response, []byte(body)
}

// answer returns the answer of an endpoint. An answer may be half a second old, so wait until
// it has what was recorded.
func answer[T any](t testing.TB, h *harness, path string, complete func(*T) bool) (a T) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, body := h.api(t, path)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
		a = *new(T)
		require.NoError(t, json.Unmarshal(body, &a))
		return complete(&a)
	}, time.Minute, 20*time.Millisecond, path)
	return a
}

type sloAnswer struct {
	SLO                  string
	Indicator            *string
	Good, Bad            int
	Attainment           *float64
	Objective, Threshold *float64
	BudgetRemaining      *float64 `json:"budget_remaining"`
	BurnRates            []struct {
		WindowSeconds float64 `json:"window_seconds"`
		Rate          *float64
	} `json:"burn_rates"`
}

type nowAnswer struct {
	WindowSeconds         float64 `json:"window_seconds"`
	RequestsPerSecond     float64 `json:"requests_per_second"`
	OutputTokensPerSecond float64 `json:"output_tokens_per_second"`
	InFlight              float64 `json:"in_flight"`
	Requests              map[string]int
	Tokens                map[string]float64
	Stalls                struct{ Count, Seconds float64 }
	Indicators            map[string]map[string]float64
	Unmeasured            []struct {
		Indicator, Reason string
		Requests          int
		Share             float64
	}
	SLOs   []sloAnswer
	Series struct{ Held, Limit int }
}

func (n *nowAnswer) total() (all int) {
	for _, requests := range n.Requests {
		all += requests
	}
	return all
}
