// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// shareOf is a number of equal requests, of which some are bad.
type shareOf struct {
	replica, tenant, errorType, prompt, cold string
	requests, bad                            int
	ttft                                     float64 // seconds, of each
}

type worstReply struct {
	Indicators map[string]found
	SLOs       map[string]found
}

type found struct {
	By, Value  string
	Requests   int
	ShareOfBad float64 `json:"share_of_bad"`
	ShareOfAll float64 `json:"share_of_all"`
	P95        float64
	Attainment float64
}

func worstOf(t *testing.T, query string, all ...shareOf) (r worstReply) {
	t.Helper()
	now := time.Now().Truncate(time.Minute).Add(30 * time.Second)
	page, engine := pageWith(now, series.Config{MaxSeries: 5000, Dimensions: series.Dimensions{
		{Attribute: "tenant"},
		{Attribute: "replica"},
		{Attribute: "error.type"},
		{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{100}, Label: "prompt"},
		{Attribute: "tokenpulse.cold"},
	}})
	for _, s := range all {
		for i := range s.requests {
			request := &series.Contribution{Dimensions: []string{s.tenant, s.replica, s.errorType, s.prompt, s.cold}, Vantage: "server", Arrival: now.Add(-time.Minute)}
			request.SetValue(numbers.RequestDuration, 10)
			if s.ttft > 0 {
				request.SetValue(numbers.TimeToFirstToken, s.ttft)
			}
			verdict := slo.Good
			if i < s.bad {
				verdict = slo.Bad
			}
			request.Verdicts.Add("fast", verdict)
			engine.Record(request)
		}
	}
	get(t, page, "worst"+query, &r)
	return r
}

// replicas returns nine replicas with requests of two tenants each; change may change one.
func replicas(change func(i int, s *shareOf)) (all []shareOf) {
	for i := range 9 {
		for _, tenant := range []string{"acme", "globex"} {
			s := shareOf{replica: fmt.Sprint("engine-", i), tenant: tenant, requests: 100, bad: 1, ttft: 0.2 + float64(i)/1000}
			change(i, &s)
			all = append(all, s)
		}
	}
	return all
}

func TestWorst_NamesTheGroupThatExplainsTheBadRequests(t *testing.T) {
	sick := replicas(func(i int, s *shareOf) {
		if i == 4 {
			s.bad, s.ttft = 92, 2
		}
	})
	r := worstOf(t, "", sick...)
	require.Equal(t, "replica", r.SLOs["fast"].By)
	require.Equal(t, "engine-4", r.SLOs["fast"].Value)
	require.Equal(t, 200, r.SLOs["fast"].Requests)
	require.InDelta(t, 184.0/200, r.SLOs["fast"].ShareOfBad, 1e-12)
	require.InDelta(t, 1.0/9, r.SLOs["fast"].ShareOfAll, 1e-12)
	require.InDelta(t, 16.0/200, r.SLOs["fast"].Attainment, 1e-12)

	slow := r.Indicators["time_to_first_token"]
	require.Equal(t, "engine-4", slow.Value)
	require.InEpsilon(t, 2, slow.P95, 0.0056)
	require.GreaterOrEqual(t, slow.ShareOfBad, 200/(200+0.05*1600), "all of its 200, and at most 5% of the others")
	require.InDelta(t, 1.0/9, slow.ShareOfAll, 1e-12)

	require.Empty(t, worstOf(t, "?where=replica%3Dengine-4", sick...).SLOs, "one group has no rest")
}

// In each case, no group has what the rest does not have.
func TestWorst_AccusesNobodyWithoutCause(t *testing.T) {
	for name, all := range map[string][]shareOf{
		"no request":            nil,
		"all are good":          replicas(func(int, *shareOf) {}),
		"all are bad":           replicas(func(_ int, s *shareOf) { s.bad = 100 }),
		"all are equally bad":   replicas(func(_ int, s *shareOf) { s.bad = 30 }),
		"one lonely request":    append(replicas(func(_ int, s *shareOf) { s.bad = 30 }), shareOf{replica: "lonely", tenant: "acme", requests: 1, bad: 1, ttft: 9}),
		"nineteen requests":     append(replicas(func(int, *shareOf) {}), shareOf{replica: "small", tenant: "acme", requests: 19, bad: 19, ttft: 9}),
		"a group without a bad": replicas(func(i int, s *shareOf) { s.bad = 50 * min(i, 1) }),
		"a difference that explains a twentieth": replicas(func(i int, s *shareOf) {
			s.requests, s.bad = 1000, 100
			if i == 4 {
				s.bad = 150
			}
		}),
		"only the outcome": {
			{replica: "a", tenant: "acme", requests: 900, ttft: 0.1},
			{replica: "b", tenant: "acme", requests: 900, ttft: 0.1},
			{replica: "a", tenant: "acme", errorType: "timeout", requests: 100, bad: 100, ttft: 5},
			{replica: "b", tenant: "acme", errorType: "timeout", requests: 100, bad: 100, ttft: 5},
		},
		"only the band": {
			{replica: "a", tenant: "acme", prompt: "100", requests: 900, ttft: 0.1},
			{replica: "b", tenant: "acme", prompt: "100", requests: 900, ttft: 0.1},
			{replica: "a", tenant: "acme", prompt: "inf", requests: 100, bad: 100, ttft: 5},
			{replica: "b", tenant: "acme", prompt: "inf", requests: 100, bad: 100, ttft: 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := worstOf(t, "", all...)
			require.Empty(t, r.SLOs)
			require.Empty(t, r.Indicators)
		})
	}
}

// A lonely request that failed does not hide the replica whose requests all fail.
func TestWorst_PrefersTheCauseToTheExtreme(t *testing.T) {
	all := replicas(func(i int, s *shareOf) {
		if i == 2 {
			s.bad = 90
		}
	})
	r := worstOf(t, "", append(all, shareOf{replica: "lonely", tenant: "solo", requests: 1, bad: 1, ttft: 60})...)
	require.Equal(t, "engine-2", r.SLOs["fast"].Value, "although all requests of another are bad")
}

// A new replica is cold, and another one is a bit slow. Cold starts explain more bad requests, and hide that one.
func TestWorst_LeavesColdStartsOut(t *testing.T) {
	all := append(replicas(func(i int, s *shareOf) {
		if i == 4 {
			s.bad, s.ttft = 30, 0.6
		}
	}), shareOf{replica: "new", tenant: "acme", cold: "true", requests: 100, bad: 100, ttft: 9}, shareOf{replica: "new", tenant: "acme", requests: 100, ttft: 0.2})
	r := worstOf(t, "", all...)
	for _, found := range []found{r.SLOs["fast"], r.Indicators["time_to_first_token"]} {
		require.Equal(t, "tokenpulse.cold true", found.By+" "+found.Value)
		require.Equal(t, 100, found.Requests)
	}
	r = worstOf(t, "?where=tokenpulse.cold%3D", all...)
	for _, found := range []found{r.SLOs["fast"], r.Indicators["time_to_first_token"]} {
		require.Equal(t, "replica engine-4", found.By+" "+found.Value)
		require.Equal(t, 200, found.Requests)
	}
}

func TestWorst_NamesOneOfTwoCauses(t *testing.T) {
	r := worstOf(t, "", replicas(func(i int, s *shareOf) {
		if i > 6 {
			s.bad = 80
		}
	})...)
	require.Equal(t, "engine-7", r.SLOs["fast"].Value)
	require.InDelta(t, 160.0/334, r.SLOs["fast"].ShareOfBad, 1e-12)
}

// A hundred equal replicas, looked at a hundred times: chance alone makes none stand out more than twice.
func TestWorst_EqualGroupsStandOutByChanceRarely(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 7))
	accused := 0
	for range 100 {
		var all []shareOf
		for i := range 100 {
			s := shareOf{replica: fmt.Sprint("engine-", i), tenant: "acme", requests: 20 + random.IntN(40)}
			for range s.requests {
				if random.Float64() < 0.05 {
					s.bad++
				}
			}
			all = append(all, s)
		}
		accused += len(worstOf(t, "", all...).SLOs)
	}
	require.LessOrEqual(t, accused, 2)
}
