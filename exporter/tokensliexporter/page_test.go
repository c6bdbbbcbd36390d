// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
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
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/api/v1/"+path, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, body
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

// Each endpoint must answer as the OpenAPI file says, without and with data.
func TestAPI_AnswersAsItsDescriptionSays(t *testing.T) {
	empty, busy := start(t, nil), start(t, withObjective)
	response, content := empty.api(t, "openapi.yaml")
	require.Equal(t, "application/yaml", response.Header.Get("Content-Type"))
	d := parseDescription(t, content)
	record := func(attributes map[string]any) {
		require.NoError(t, busy.exporter.ConsumeTraces(t.Context(), batch(attributes)))
	}
	record(with(map[string]any{"tokenpulse.timeline": chunks(500*time.Millisecond, 520*time.Millisecond, 1300*time.Millisecond)}))
	record(with(map[string]any{"tokenpulse.outcome": "error", "gen_ai.request.model": nil}))
	record(with(map[string]any{
		"tokenpulse.slo.breached":           []any{"chat-tpot", "x"},
		"tokenpulse.slo.breached.indicator": []any{"time_per_output_token", nil}, "tokenpulse.slo.breached.threshold": []any{0.01, nil},
	}))
	record(map[string]any{"tokenpulse.outcome": "incomplete", "tokenpulse.unmeasured": []any{"time_to_first_token=no_token"}})
	answer(t, busy, "now", func(n *nowAnswer) bool { return n.total() == 4 })

	asked := map[string]bool{}
	for _, h := range []*harness{empty, busy} {
		for _, path := range []string{
			"meta", "now", "now?range=24h&where=gen_ai.request.model%3Dllama&vantage=server&outcome=success&outcome=error",
			"worst", "trends", "trends?rank=requests", "trends?by=outcome", "trends?by=service.name&value=chat&value=none&groups=1&range=1h", "trends?by=vantage&range=24h",
			"distributions", "distributions?cdf=true&by=outcome&value=success&value=error", "heatmap", "heatmap?indicator=queue",
			"compare?dimension=service.name&baseline=chat&candidate=new&slo=chat-tpot",
			"compare?dimension=service.name&baseline=chat&candidate=new&indicator=time_to_first_token&percentile=95&since=now&alpha=0.01&tolerance=0.2&expected_share=0.1&vantage=server",
			"load", "prompts", "requests", "requests?slowest=time_to_first_token&limit=1", "openapi.yaml",
		} {
			response, body := h.api(t, path)
			require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
			name, _, _ := strings.Cut(path, "?")
			d.check(t, "/api/v1/"+name, "200", response.Header.Get("Content-Type"), body)
			asked["/api/v1/"+name] = true
		}
	}
	for _, r := range answer(t, busy, "requests", func(a *struct{ Requests []struct{ ID string } }) bool { return len(a.Requests) == 3 }).Requests {
		response, body := busy.api(t, "requests/"+r.ID)
		require.Equal(t, http.StatusOK, response.StatusCode)
		d.check(t, "/api/v1/requests/{id}", "200", "application/json", body)
	}
	asked["/api/v1/requests/{id}"], asked["/api/v1/events"] = true, true // TestEvents_ checks that one
	for _, endpoint := range d.endpoints() {
		require.True(t, asked[endpoint], "%s is not checked", endpoint)
	}
}

type apiError struct {
	Error struct {
		Status          int
		Message, Remedy string
	}
}

func TestAPI_ErrorsHaveARemedy(t *testing.T) {
	h := start(t, nil)
	_, content := h.api(t, "openapi.yaml")
	d := parseDescription(t, content)
	failing := map[string]int{
		"now?range=2": 400, "now?range=59s": 400, "now?range=25h": 400, "now?end=x": 400, "now?end=-1": 400, "now?end=1.5": 400, "now?where=x": 400, "now?where=x%3Dy": 400, "now?outcome=x": 400, "now?range=1h&range=1h": 400, "now?range=%zz": 400,
		"trends?by=x": 400, "trends?groups=0": 400, "trends?groups=51": 400, "trends?rank=x": 400, "distributions?cdf=maybe": 400, "heatmap?indicator=x": 400,
		"requests?limit=x": 400, "requests?slowest=x": 400, "requests/unknown": 404, "unknown": 404, "now?" + strings.Repeat("vantage=x&", 51): 400,
	}
	for _, endpoint := range d.endpoints() {
		if endpoint != "/api/v1/openapi.yaml" {
			failing[strings.TrimPrefix(endpoint, "/api/v1/")+"?nonsense=1"] = 400
		}
	}
	for path, status := range failing {
		response, body := h.api(t, path)
		require.Equal(t, status, response.StatusCode, path)
		d.check(t, "/api/v1/now", "default", response.Header.Get("Content-Type"), body)
		var e apiError
		require.NoError(t, json.Unmarshal(body, &e))
		require.Equal(t, status, e.Error.Status)
		require.NotEmpty(t, e.Error.Message)
		require.NotEmpty(t, e.Error.Remedy)
		if name, ok := strings.CutSuffix(path, "?nonsense=1"); ok {
			known := strings.TrimPrefix(e.Error.Remedy, "valid parameters: ")
			want := strings.Join(d.parameters(t, "/api/v1/"+name), ", ")
			if want == "" {
				want = "none"
			}
			require.Equal(t, want, known, "%s: its parameters in openapi.yaml", name)
		}
	}
}
