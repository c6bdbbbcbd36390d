// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

const capacityPath = "/api/v1/capacity"

func withCapacity(c *Config) {
	c.Capacity = []CapacityConfig{{SLO: "all", Objective: 0.9, Forget: defaultForget}}
}

// fleet has replicas whose requests take a second, with answers of 100 tokens and prompts of 1,000, of which 400 were cached.
type fleet struct {
	*harness

	at       time.Time
	replicas []string
}

func newFleet(h *harness, ago time.Duration, replicas ...string) *fleet {
	return &fleet{h, time.Now().Add(-ago), replicas}
}

const slotOfCapacity = 15 * time.Second

// serve sends requests for slots, evenly, of each replica.
func (f *fleet) serve(t *testing.T, slots, perSlot int, attributes map[string]any) {
	t.Helper()
	all := ptrace.NewTraces()
	for range slots * perSlot {
		for _, replica := range f.replicas {
			one := keepertest.Batch(keepertest.Request(attributes))
			one.ResourceSpans().At(0).Resource().Attributes().PutStr("service.instance.id", replica)
			span := one.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(f.at))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(f.at.Add(time.Second)))
			one.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
		}
		f.at = f.at.Add(slotOfCapacity / time.Duration(perSlot))
	}
	require.NoError(t, f.exporter.ConsumeTraces(t.Context(), all))
}

func request(verdict string, more map[string]any) map[string]any {
	attributes := map[string]any{
		"tokenpulse.vantage": "engine", "gen_ai.request.model": "m", "tokenpulse.slo." + verdict: []any{"tpot"},
		"gen_ai.usage.output_tokens": 100, "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cache_read.input_tokens": 400,
	}
	maps.Copy(attributes, more)
	return attributes
}

// toKnee serves 2 requests/s on each replica for two hours, and then 4, which miss the objective.
func (f *fleet) toKnee(t *testing.T) {
	t.Helper()
	f.serve(t, 480, 30, request("met", nil))
	f.serve(t, 20, 60, request("met", nil))
	f.serve(t, 100, 60, request("breached", nil))
}

const ofToKnee = 600 * slotOfCapacity

type capacityAnswer struct {
	SLO, Vantage   string
	Objective      float64
	Dimensions     map[string]string
	Limit          capacityKinds
	Load, Room     *capacityKinds
	Utilization    *float64
	ReplicasNeeded float64 `json:"replicas_needed"`
	MissedAt       float64 `json:"missed_at"`
	Stale          bool
	Replicas       []struct {
		Replica     string
		Load        capacityKinds
		Utilization float64
	}
}

type capacityKinds struct {
	Requests     float64
	OutputTokens float64 `json:"output_tokens"`
	PromptTokens float64 `json:"prompt_tokens"`
}

func (h *harness) capacity(t *testing.T, query url.Values) (a capacityAnswer) {
	t.Helper()
	response, body := h.get(t, capacityPath+"?"+query.Encode())
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	require.NoError(t, json.Unmarshal([]byte(body), &a))
	return a
}

type apiFailure struct {
	Error struct{ Message, Remedy, Reason string }
}

func (h *harness) noCapacity(t *testing.T, status int, query url.Values) (f apiFailure) {
	t.Helper()
	response, body := h.get(t, capacityPath+"?"+query.Encode())
	require.Equal(t, status, response.StatusCode, body)
	require.NoError(t, json.Unmarshal([]byte(body), &f))
	require.NotEmpty(t, f.Error.Remedy)
	return f
}

func (h *harness) gauges(t *testing.T, prefix string) (lines []string) {
	t.Helper()
	body, _ := h.scrape(t, text)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestCapacity_GaugesAndAPI(t *testing.T) {
	h := start(t, withCapacity)
	require.Equal(t, "too_few", h.noCapacity(t, http.StatusServiceUnavailable, nil).Error.Reason)
	f := newFleet(h, ofToKnee+10*time.Minute, "a", "b")
	f.serve(t, 4, 30, request("met", nil))
	require.Equal(t, "too_few", h.noCapacity(t, http.StatusServiceUnavailable, nil).Error.Reason)
	require.Empty(t, h.gauges(t, "tokenpulse_capacity"))
	f.toKnee(t)

	time.Sleep(maxAnswerAge) // answers are kept that long
	a := h.capacity(t, nil)
	require.Equal(t, []any{"all", 0.9, "engine", "m", false}, []any{a.SLO, a.Objective, a.Vantage, a.Dimensions["gen_ai.request.model"], a.Stale})
	require.InDelta(t, 2, a.Limit.Requests, 0.1)
	require.LessOrEqual(t, a.Limit.Requests, 4.0)
	require.InDelta(t, 100*a.Limit.Requests, a.Limit.OutputTokens, 1e-6)
	require.InDelta(t, 600*a.Limit.Requests, a.Limit.PromptTokens, 1e-6, "cached tokens are no load")
	require.InDelta(t, 8, a.Load.Requests, 0.4)
	require.InDelta(t, 2, *a.Utilization, 0.2)
	require.Contains(t, []float64{4, 5}, a.ReplicasNeeded)
	require.Zero(t, a.Room.Requests)
	require.InDelta(t, float64(f.at.Unix()), a.MissedAt, 700, "the last slot that is complete")
	require.Len(t, a.Replicas, 2)
	require.Equal(t, "b", a.Replicas[1].Replica)
	require.InDelta(t, 4, a.Replicas[1].Load.Requests, 0.2)
	require.InDelta(t, 2, a.Replicas[1].Utilization, 0.2)

	require.Equal(t, 1.0, h.capacity(t, url.Values{"load": {"1"}}).ReplicasNeeded)
	require.Equal(t, 10.0, h.capacity(t, url.Values{"load": {fmt.Sprint(9.5 * a.Limit.Requests)}}).ReplicasNeeded)

	const labels = `gen_ai_request_model="m"`
	lines := h.gauges(t, "tokenpulse_capacity")
	require.Len(t, lines, 7)
	for _, want := range []string{
		fmt.Sprintf(`tokenpulse_capacity_limit{%s,kind="output_tokens",service_name="chat",slo="all",vantage="engine"} %v`, labels, 2*a.Limit.OutputTokens),
		fmt.Sprintf(`tokenpulse_capacity_limit{%s,kind="requests",service_name="chat",slo="all",vantage="engine"} %v`, labels, 2*a.Limit.Requests),
	} {
		require.Contains(t, lines, want)
	}
	require.Contains(t, strings.Join(lines, "\n"), `tokenpulse_capacity_utilization{`+labels+`,service_name="chat",slo="all",vantage="engine"} `)

	f.serve(t, 10, 15, request("met", nil))
	time.Sleep(maxAnswerAge)
	a = h.capacity(t, nil)
	require.InDelta(t, 2*a.Limit.Requests-2, a.Room.Requests, 0.2)
	require.InDelta(t, 100*a.Room.Requests, a.Room.OutputTokens, 1e-6)
	require.Equal(t, 2.0, a.ReplicasNeeded, "2 requests/s are just over the limit of one")
	require.Zero(t, keepertest.Value(t, h.telemetry, "token_sli_capacity_dropped"))
}

// maxAnswerAge is longer than the API keeps an answer.
const maxAnswerAge = 600 * time.Millisecond

func TestCapacity_QuestionsThatItCannotAnswer(t *testing.T) {
	require.Contains(t, start(t, nil).noCapacity(t, http.StatusNotFound, nil).Error.Remedy, "capacity: [{slo: all, objective: 0.95}]")
	h := start(t, func(c *Config) {
		withCapacity(c)
		c.Capacity = append(c.Capacity, CapacityConfig{SLO: "tpot", Objective: 0.99, Forget: time.Hour})
	})
	f := newFleet(h, time.Hour, "a")
	for _, model := range []string{"m", "n"} {
		f.serve(t, 4, 4, request("met", map[string]any{"gen_ai.request.model": model}))
	}
	require.Equal(t, "valid values: all, tpot", h.noCapacity(t, http.StatusBadRequest, nil).Error.Remedy)
	all := func(more url.Values) url.Values {
		more.Set("slo", "all")
		return more
	}
	require.Contains(t, h.noCapacity(t, http.StatusBadRequest, all(url.Values{})).Error.Remedy, "gen_ai.request.model=")
	require.Contains(t, h.noCapacity(t, http.StatusBadRequest, all(url.Values{"load": {"-1"}})).Error.Remedy, "requests per second")
	f.serve(t, 4, 4, request("met", map[string]any{"tokenpulse.vantage": "server"}))
	time.Sleep(maxAnswerAge)
	both := url.Values{"where": {"gen_ai.request.model=m"}, "vantage": {"all"}}
	require.Equal(t, "give `vantage`, such as engine or server", h.noCapacity(t, http.StatusBadRequest, all(both)).Error.Remedy)
	one := url.Values{"where": {"gen_ai.request.model=n"}}
	require.Equal(t, "too_few", h.noCapacity(t, http.StatusServiceUnavailable, all(one)).Error.Reason)
	one["where"] = []string{"gen_ai.request.model=typo"}
	require.Contains(t, h.noCapacity(t, http.StatusServiceUnavailable, all(one)).Error.Remedy, "`where`")
}

// Who sees an engine from outside names it by its address. Without one, there is no replica.
func TestCapacity_ReplicasByVantage(t *testing.T) {
	h := start(t, withCapacity)
	f := newFleet(h, ofToKnee+time.Minute, "of the client")
	client := map[string]any{"tokenpulse.vantage": "client", "server.address": "10.0.0.7", "server.port": 8000}
	f.serve(t, 480, 8, request("met", client))
	f.serve(t, 20, 16, request("met", client))
	f.serve(t, 100, 16, request("breached", client))
	require.Equal(t, "10.0.0.7:8000", h.capacity(t, nil).Replicas[0].Replica)

	client["server.address"], client["gen_ai.request.model"] = "", "unknown"
	f.serve(t, 4, 8, request("met", client))
	require.Contains(t, h.noCapacity(t, http.StatusServiceUnavailable, url.Values{"where": {"gen_ai.request.model=unknown"}}).Error.Remedy, "no request")
	require.Equal(t, int64(32), keepertest.Values(t, h.telemetry, "token_sli_capacity_dropped", "reason")["unnamed"])
}

// What was learned survives a restart. The present load does not: an autoscaler must not take it for none.
func TestCapacity_AfterARestart(t *testing.T) {
	host, id := storagetest.NewHost(t), storagetest.FileStorage
	stored := func(c *Config) {
		withCapacity(c)
		c.Shared.StorageID = &id
	}
	var before capacityAnswer
	t.Run("before", func(t *testing.T) {
		h := startOn(t, host, stored)
		newFleet(h, ofToKnee+time.Minute, "a").toKnee(t)
		before = h.capacity(t, nil)
	})
	h := startOn(t, host, stored)
	require.Contains(t, h.noCapacity(t, http.StatusServiceUnavailable, nil).Error.Remedy, "just started")
	require.Empty(t, h.gauges(t, "tokenpulse_capacity"))
	unknown := h.capacity(t, url.Values{"load": {"1"}})
	require.Equal(t, [3]any{(*float64)(nil), (*capacityKinds)(nil), (*capacityKinds)(nil)}, [3]any{unknown.Utilization, unknown.Load, unknown.Room})
	require.Equal(t, 3.0, h.capacity(t, url.Values{"load": {fmt.Sprint(2.5 * before.Limit.Requests)}}).ReplicasNeeded)
	again := newFleet(h, 4*time.Minute, "a")
	again.serve(t, 4, 15, request("met", nil))
	time.Sleep(maxAnswerAge)
	h.noCapacity(t, http.StatusServiceUnavailable, nil) // other replicas may not have been seen yet
	again.serve(t, 12, 15, request("met", nil))
	time.Sleep(maxAnswerAge)
	after := h.capacity(t, nil)
	require.Equal(t, before.Limit, after.Limit)
	require.InDelta(t, 1, after.Load.Requests, 0.1)
}

// Some engines report zero tokens of a request that they refuse.
func TestCapacity_RefusedRequestsHaveMeanSize(t *testing.T) {
	h := start(t, withCapacity)
	f := newFleet(h, ofToKnee+30*time.Minute, "a")
	f.toKnee(t)
	f.serve(t, 100, 30, request("breached", map[string]any{"tokenpulse.outcome": "error", "gen_ai.usage.output_tokens": 0, "gen_ai.usage.input_tokens": 0}))
	a := h.capacity(t, nil)
	require.InDelta(t, 100*a.Limit.Requests, a.Limit.OutputTokens, 1e-6)
	require.InDelta(t, 2, a.Load.Requests, 0.1)
	require.InDelta(t, 200, a.Load.OutputTokens, 10)
}

// What is no request of its own does not count: the root of a trace, and a request that its receiver sends as metrics. What only the outcome
// decides makes no series of its own.
func TestCapacity_WhatIsARequestOfWhichSeries(t *testing.T) {
	h := start(t, func(c *Config) {
		withCapacity(c)
		c.Shared.Series.Dimensions = series.DimensionsOf("gen_ai.request.model", "error.type")
	})
	h.send(t, map[string]any{"tokenpulse.trace.time_to_answer": 1.0, "tokenpulse.vantage": "engine"})
	f := newFleet(h, time.Hour, "a")
	f.serve(t, 4, 4, request("met", map[string]any{"tokenpulse.aggregated": true}))
	require.Contains(t, h.noCapacity(t, http.StatusServiceUnavailable, nil).Error.Remedy, "no request of this selection has been seen")
	require.Zero(t, keepertest.Value(t, h.telemetry, "token_sli_capacity_dropped"))

	f.serve(t, 4, 4, request("met", nil))
	f.serve(t, 4, 4, request("breached", map[string]any{"error.type": "overloaded", "tokenpulse.outcome": "error"}))
	time.Sleep(maxAnswerAge)
	require.Contains(t, h.noCapacity(t, http.StatusServiceUnavailable, nil).Error.Remedy, "wait for more requests")
}

// The load curve has the limit of the present only.
func TestCapacity_OnTheLoadCurve(t *testing.T) {
	h := start(t, withCapacity)
	f := newFleet(h, ofToKnee+10*time.Minute, "a", "b")
	f.toKnee(t)
	f.serve(t, 20, 15, request("met", nil))
	limit := h.capacity(t, nil)
	ask := func(more string) (all []struct {
		SLO    string
		Reason *string
		Limit  *capacityKinds
		Room   *float64
	},
	) {
		t.Helper()
		var answer struct{ Capacity json.RawMessage }
		_, body := h.get(t, "/api/v1/load?"+more)
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
		require.NoError(t, json.Unmarshal(answer.Capacity, &all))
		return all
	}
	now := ask("")
	require.Len(t, now, 1)
	require.Nil(t, now[0].Reason)
	require.InDelta(t, 2*limit.Limit.OutputTokens, now[0].Limit.OutputTokens, 1e-6)
	require.InDelta(t, limit.Room.Requests, *now[0].Room, 0.2)
	require.Empty(t, ask(fmt.Sprint("end=", time.Now().Add(-time.Second).Unix())))
}

func TestCapacity_DroppedRequestsAreCounted(t *testing.T) {
	h := start(t, withCapacity)
	f := newFleet(h, time.Hour, "a")
	f.serve(t, 50, 1, request("met", nil))
	f.at = f.at.Add(-11 * time.Minute)
	f.serve(t, 2, 1, request("met", nil))
	require.Equal(t, map[string]int64{"late": 2, "unnamed": 0, "series": 0, "replicas": 0}, keepertest.Values(t, h.telemetry, "token_sli_capacity_dropped", "reason"))
}

func TestConfig_Capacity(t *testing.T) {
	for name, c := range map[string]struct {
		entries []CapacityConfig
		err     string
	}{
		"no SLO":       {[]CapacityConfig{{Objective: 0.9, Forget: time.Hour}}, "`capacity::0::slo` is empty"},
		"twice":        {[]CapacityConfig{{SLO: "a", Objective: 0.9, Forget: time.Hour}, {SLO: "a", Objective: 0.9, Forget: time.Hour}}, "`capacity::1::slo` is \"a\", which `capacity::0::slo` is, too"},
		"per cent":     {[]CapacityConfig{{SLO: "a", Objective: 95, Forget: time.Hour}}, "from 0.5 to 0.999, such as 0.95"},
		"short":        {[]CapacityConfig{{SLO: "a", Objective: 0.9, Forget: time.Minute}}, "`capacity::0::forget` is 1m0s"},
		"many entries": {make([]CapacityConfig, 11), "`capacity` has 11 entries; the maximum is 10"},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			config.Capacity = c.entries
			require.ErrorContains(t, config.Validate(), c.err)
		})
	}
}
