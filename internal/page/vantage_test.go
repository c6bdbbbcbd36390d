// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// observed has the requests that one vantage sees within a second.
type observed struct {
	vantage  string
	requests int
	bad      int    // of the SLO
	slo      string // or fast
	outcome  series.Outcome
	model    string // or llama
}

// pageOf returns a page that was sent the requests two minutes ago. Each takes a second, its first token half of it,
// and has 10 tokens.
func pageOf(all ...observed) *Page {
	now := time.Now().Truncate(time.Minute).Add(30 * time.Second)
	page, engine := pageAt(now)
	at := now.Add(-2 * time.Minute)
	for _, o := range all {
		if o.slo == "" {
			o.slo = "fast"
		}
		if o.model == "" {
			o.model = "llama"
		}
		for i := range o.requests {
			r := &series.Contribution{Dimensions: []string{o.model}, Vantage: o.vantage, Arrival: at, Outcome: o.outcome}
			r.SetValue(numbers.RequestDuration, 1)
			r.SetValue(numbers.TimeToFirstToken, 0.5)
			r.SetValue(numbers.InputTokens, 100)
			r.SetValue(numbers.OutputTokens, 10)
			verdict := slo.Good
			if i < o.bad {
				verdict = slo.Bad
			}
			r.Verdicts.Add(o.slo, verdict)
			engine.Record(r)
			page.Slowest.Add(r, nil, slowest.Facts{})
			page.Tracker.Record(r.AppendKey(nil), &r.Verdicts, now)
		}
	}
	return page
}

// reply has the members of all answers.
type reply struct {
	Vantage struct {
		Shown    string
		Sum      bool
		Requests []seenRequests
		Doubts   []doubt
	}
	Requests map[string]int
	Tokens   map[string]float64
	Doubts   []doubt
	SLOs     []struct {
		SLO, Vantage    string
		Good, Bad       int
		Judged          *float64
		Attainment      *float64
		BudgetRemaining *float64 `json:"budget_remaining"`
	}
	Groups []struct {
		Value    string
		Requests int
	}
	Total struct {
		RequestsPerSecond []*float64 `json:"requests_per_second"`
	}
	Counts  [][]int
	Buckets []struct{ Uncached *struct{ Count int } }
}

// loadReply is an answer of load.
type loadReply struct {
	InFlight struct {
		Points []struct {
			Requests int
			SLOs     []struct{ Attainment float64 }
		}
	} `json:"in_flight"`
}

func get(t *testing.T, page *Page, path string, into any) {
	t.Helper()
	w := httptest.NewRecorder()
	page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/"+path, http.NoBody))
	require.Equal(t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), into), path)
}

func replyTo(t *testing.T, page *Page, path string) (r reply) {
	t.Helper()
	get(t, page, path, &r)
	return r
}

func slowestOfVantages(t *testing.T, page *Page, path string) (vantages map[string]int) {
	t.Helper()
	var r struct{ Requests []struct{ Vantage string } }
	get(t, page, path, &r)
	vantages = map[string]int{}
	for _, request := range r.Requests {
		vantages[request.Vantage]++
	}
	return vantages
}

// 40 requests, of which 8 are bad for the client: 32/40 = 0.80. The sum of three vantages is 120 with 112/120 = 0.933.
var threefold = []observed{{vantage: "client", requests: 40, bad: 8}, {vantage: "gateway", requests: 40}, {vantage: "engine", requests: 40}}

func TestVantage_EachAnswerCountsARequestOnce(t *testing.T) {
	page := pageOf(threefold...)
	for query, want := range map[string]struct {
		shown      string
		sum        bool
		requests   int
		attainment float64
	}{
		"":                 {"client", false, 40, 0.8},
		"&vantage=client":  {"client", false, 40, 0.8},
		"&vantage=gateway": {"gateway", false, 40, 1},
		"&vantage=engine":  {"engine", false, 40, 1},
		"&vantage=server":  {"server", false, 0, 0},
		"&vantage=all":     {"all", true, 120, 112. / 120},
	} {
		answers := map[string]reply{}
		for _, endpoint := range []string{"now", "distributions", "trends", "heatmap", "prompts"} {
			path := endpoint + "?range=5m" + query
			if endpoint == "heatmap" {
				path += "&indicator=request_duration"
			}
			r := replyTo(t, page, path)
			answers[endpoint] = r
			require.Equal(t, want.shown, r.Vantage.Shown, path)
			require.Equal(t, want.sum, r.Vantage.Sum, path)
			require.Equal(t, []seenRequests{{"client", 40}, {"gateway", 40}, {"engine", 40}}, r.Vantage.Requests, path)
			require.Empty(t, r.Vantage.Doubts, path)
		}
		for _, endpoint := range []string{"worst", "requests", "load"} {
			requireShown(t, page, endpoint+"?range=5m"+query, want.shown)
		}

		now := answers["now"]
		fast := now.SLOs[len(now.SLOs)-1] // after all, which needs a verdict
		require.Equal(t, want.requests, now.Requests["success"], query)
		require.InDelta(t, float64(10*want.requests), now.Tokens["output"], 0, query)
		require.Empty(t, now.Doubts, query)
		require.Equal(t, want.requests, fast.Good+fast.Bad, query)
		held := slowestOfVantages(t, page, "requests?range=5m&limit=100"+query)
		if want.requests == 0 {
			require.Empty(t, held, query)
			continue
		}
		if want.sum {
			require.Len(t, held, 3, query)
		} else {
			require.Equal(t, map[string]int{want.shown: min(40, held[want.shown])}, held, query)
		}
		require.InDelta(t, want.attainment, *fast.Attainment, 1e-12, query)
		require.InDelta(t, 1, *fast.Judged, 0, query)
		// the budget of an objective of 0.9: 1 - (share of bad requests) / 0.1
		require.InDelta(t, 1-(1-want.attainment)/0.1, *fast.BudgetRemaining, 1e-9, query)
		require.Equal(t, want.shown, fast.Vantage, query)
		require.Equal(t, want.requests, answers["distributions"].Groups[0].Requests, query)
		require.Equal(t, want.requests, answers["trends"].Groups[0].Requests, query)
		require.InDelta(t, float64(want.requests)/5, most(answers["trends"].Total.RequestsPerSecond), 1e-9, "a slot has 5 seconds: %s", query)
		var load loadReply
		get(t, page, "load?range=5m"+query, &load)
		require.Equal(t, want.requests, load.InFlight.Points[0].Requests, query)
		require.InDelta(t, want.attainment, load.InFlight.Points[0].SLOs[0].Attainment, 1e-12, query)
		require.Equal(t, want.requests, answers["prompts"].Buckets[0].Uncached.Count, query)
		values := 0
		for _, step := range answers["heatmap"].Counts {
			for _, n := range step {
				values += n
			}
		}
		require.Equal(t, want.requests, values, query)
	}
}

func requireShown(t *testing.T, page *Page, path, vantage string) {
	t.Helper()
	var r struct{ Vantage struct{ Shown string } }
	get(t, page, path, &r)
	require.Equal(t, vantage, r.Vantage.Shown, path)
}

func most(values []*float64) (largest float64) {
	for _, v := range values {
		if v != nil {
			largest = max(largest, *v)
		}
	}
	return largest
}

func by(vantage string, requests int) observed { return observed{vantage: vantage, requests: requests} }

func TestVantage_OutermostWithHalfOfTheRequestsIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		all     []observed
		query   string
		shown   string
		total   int
		doubted []string // about
	}{
		"exactly half":              {[]observed{by("client", 20), by("engine", 40)}, "", "client", 20, nil},
		"fewer than half":           {[]observed{by("client", 19), by("engine", 40)}, "", "engine", 40, []string{"client"}},
		"the next one":              {[]observed{by("client", 1), by("gateway", 30), by("server", 40)}, "", "gateway", 30, []string{"client"}},
		"two with fewer":            {[]observed{by("client", 1), by("gateway", 2), by("engine", 40)}, "", "engine", 40, []string{"client", "gateway"}},
		"an inner one with fewer":   {[]observed{by("client", 40), by("engine", 1)}, "", "client", 40, nil},
		"one that is named":         {[]observed{by("client", 19), by("engine", 40)}, "&vantage=client", "client", 19, nil},
		"one vantage":               {[]observed{by("server", 40)}, "", "server", 40, nil},
		"none":                      {nil, "", "", 0, nil},
		"unknown vantages only":     {[]observed{by("", 30), by("moon", 10)}, "", "", 40, nil},
		"one, and unknown ones":     {[]observed{by("server", 3), by("", 37)}, "", "server", 40, nil},
		"several, and unknown ones": {[]observed{by("client", 30), by("engine", 40), by("", 5)}, "", "client", 35, []string{""}},
		"of the filtered model": {
			[]observed{{vantage: "client", requests: 40, model: "a"}, {vantage: "engine", requests: 4, model: "b"}}, "&where=m=b", "engine", 4, nil,
		},
		"whatever the outcome": {
			[]observed{by("client", 40), {vantage: "engine", requests: 40, outcome: series.Cancelled}}, "&outcome=cancelled", "client", 0, nil,
		},
		"of all, with one vantage":    {[]observed{by("server", 40)}, "&vantage=all", "all", 40, nil},
		"of all, and unknown ones":    {[]observed{by("server", 40), by("", 5)}, "&vantage=all", "all", 45, nil},
		"beyond the limit of series":  {append(models(10), observed{vantage: "client", requests: 5, model: "further"}), "", "client", 15, nil},
		"named, beyond the limit":     {append(models(10), observed{vantage: "client", requests: 5, model: "further"}), "&vantage=client", "client", 10, nil},
		"an outer one of other times": {[]observed{by("engine", 40)}, "&end=1000", "", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := replyTo(t, pageOf(c.all...), "now?range=5m"+c.query)
			require.Equal(t, c.shown, r.Vantage.Shown)
			require.False(t, r.Vantage.Sum)
			total := 0
			for _, n := range r.Requests {
				total += n
			}
			require.Equal(t, c.total, total)
			var about []string
			for _, d := range r.Vantage.Doubts {
				require.Contains(t, d.Message, "; ", "a doubt has a remedy")
				about = append(about, d.About)
			}
			require.Equal(t, c.doubted, about)
			require.Len(t, r.Doubts, len(c.doubted), "those of the vantage are among the doubts of now")
		})
	}
}

// models returns a request of the client for each of n models.
func models(n int) (all []observed) {
	for i := range n {
		all = append(all, observed{vantage: "client", requests: 1, model: string(rune('a' + i))})
	}
	return all
}

func TestVantage_GroupsByVantageHaveAll(t *testing.T) {
	page := pageOf(threefold...)
	for query, want := range map[string]map[string]int{
		"by=vantage":                           {"client": 40, "gateway": 40, "engine": 40},
		"by=vantage&vantage=all":               {"client": 40, "gateway": 40, "engine": 40},
		"by=vantage&vantage=engine":            {"engine": 40},
		"by=vantage&value=engine&value=client": {"engine": 40, "client": 40},
		"by=outcome":                           {"success": 40},
	} {
		for _, endpoint := range []string{"distributions", "trends"} {
			got := map[string]int{}
			for _, g := range replyTo(t, page, endpoint+"?"+query).Groups {
				got[g.Value] = g.Requests
			}
			require.Equal(t, want, got, "%s %s", endpoint, query)
		}
	}
	trends := replyTo(t, page, "trends?by=vantage")
	require.Equal(t, "client", trends.Vantage.Shown)
	require.InDelta(t, 8, most(trends.Total.RequestsPerSecond), 1e-9, "the total is that of one vantage: 40 requests in 5 s")
}

// An SLO that matches another vantage has no verdict of the shown one.
func TestVantage_SLOOfAnotherVantageHasItsVerdicts(t *testing.T) {
	page := pageOf(observed{vantage: "client", requests: 40, slo: "answer"}, observed{vantage: "engine", requests: 50, bad: 2})
	r := replyTo(t, page, "now")
	require.Equal(t, "client", r.Vantage.Shown)
	require.Equal(t, 40, r.Requests["success"])
	answer, fast := r.SLOs[1], r.SLOs[2] // after all
	require.Equal(t, []any{"answer", "client", 40, 0}, []any{answer.SLO, answer.Vantage, answer.Good, answer.Bad})
	require.Equal(t, []any{"fast", "engine", 48, 2}, []any{fast.SLO, fast.Vantage, fast.Good, fast.Bad})
	require.InDelta(t, 0.96, *fast.Attainment, 1e-12)
	require.InDelta(t, 1, *fast.Judged, 0)
	require.InDelta(t, 0.6, *fast.BudgetRemaining, 1e-9, "4% of bad requests, of 10% that may be")

	named := replyTo(t, page, "now?vantage=client").SLOs[2]
	require.Equal(t, []any{"fast", "client", 0, 0}, []any{named.SLO, named.Vantage, named.Good, named.Bad})
	require.Nil(t, named.Attainment)
}

func TestVantage_InvalidOnesAreRefused(t *testing.T) {
	page := pageOf(threefold...)
	for query, want := range map[string]string{
		"vantage=clients":                "valid values: client, gateway, server, engine, all",
		"vantage=":                       "valid values: client, gateway, server, engine, all",
		"vantage=client&vantage=gateway": "give it once",
	} {
		for _, endpoint := range []string{"now", "worst", "trends", "distributions", "heatmap", "load", "prompts", "requests", "events"} {
			w := httptest.NewRecorder()
			page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/"+endpoint+"?"+query, http.NoBody))
			require.Equal(t, http.StatusBadRequest, w.Code, "%s?%s", endpoint, query)
			require.Contains(t, w.Body.String(), want)
		}
	}
}

// Without requests in the range, the budgets are those of the vantage that had requests before.
func TestVantage_AnIdleRangeKeepsItsBudgets(t *testing.T) {
	page := pageOf(threefold...)
	r := replyTo(t, page, "now?range=1m")
	require.Equal(t, "client", r.Vantage.Shown)
	require.Empty(t, r.Vantage.Requests)
	require.Zero(t, r.Requests["success"])
	require.InDelta(t, -1, *r.SLOs[0].BudgetRemaining, 1e-9, "20% of bad requests, of 10% that may be")

	unknown := replyTo(t, pageOf(observed{requests: 40, bad: 8}), "now?range=1m")
	require.Empty(t, unknown.Vantage.Shown)
	require.InDelta(t, -1, *unknown.SLOs[0].BudgetRemaining, 1e-9)
}
