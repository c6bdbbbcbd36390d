// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arrivals"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/workload"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const begin = int64(1_795_233_292_000_000_000)

// steady returns a run of an hour of two replicas with as many requests per second. One of so many is bad; 0 means none.
func steady(perSecond, oneBadOf int, change func(i int, q *arrivals.Request)) []arrivals.Request {
	var all []arrivals.Request
	for i := range 3600*perSecond + 1 {
		q := arrivals.Request{
			Start: begin + int64(i)*int64(time.Second)/int64(perSecond), Seconds: 2, Sized: true, Output: 100, Prompt: 1000, Cached: 400,
			Replica: uint16(1 + i%2), Vantage: timeline.VantageEngine, Verdict: slo.Good,
		}
		if oneBadOf > 0 && i%oneBadOf == 0 {
			q.Verdict = slo.Bad
		}
		if change != nil {
			change(i, &q)
		}
		all = append(all, q)
	}
	return all
}

func measured(name string, all []arrivals.Request) Run {
	return Measure(name, all, timeline.VantageEngine, 0)
}

func TestMeasure_CountsTheSteadyPart(t *testing.T) {
	r := measured("a", steady(4, 0, func(i int, q *arrivals.Request) {
		switch {
		case i < 1440 || i > 13_000: // of 14,401, the first tenth and most of the last one
			q.Verdict = slo.Bad
		case i%100 == 50: // refused
			q.Verdict, q.Sized, q.Output, q.Prompt, q.Cached = slo.Bad, false, 0, 0, 0
		case i%100 == 51:
			q.Verdict = slo.NotEligible
		}
	}))
	require.Equal(t, 48*time.Minute, r.Time)
	require.Equal(t, 11_520, r.Requests)
	require.InDelta(t, 115, r.Bad, 1)
	require.InDelta(t, 11_520-115, r.Eligible, 1)
	require.Equal(t, 2, r.Replicas)
	require.InDelta(t, 2, r.Load[capacity.Requests], 1e-9)
	require.InDelta(t, 200, r.Load[capacity.OutputTokens], 1e-9, "refused requests have the mean size")
	require.InDelta(t, 1200, r.Load[capacity.PromptTokens], 1e-9, "cached tokens are no load")
	require.InDelta(t, 48*60/minSlot, r.evidence.Slots, 1e-9)
	require.InDelta(t, 0.01, r.evidence.Bad/r.evidence.Slots, 1e-3)
	require.Equal(t, "engine", r.Vantage)
}

func TestMeasure_TakesReplicasFromTheCaller(t *testing.T) {
	unnamed := steady(4, 0, func(_ int, q *arrivals.Request) { q.Replica = 0 })
	require.Equal(t, 1, measured("a", unnamed).Replicas)
	r := Measure("a", unnamed, timeline.VantageClient, 8)
	require.Equal(t, 8, r.Replicas)
	require.InDelta(t, 0.5, r.Load[capacity.Requests], 1e-9)
}

func TestMeasure_SlotsAreAsLongAsRequests(t *testing.T) {
	r := measured("a", steady(4, 0, func(_ int, q *arrivals.Request) { q.Seconds = 60 }))
	require.InDelta(t, 48, r.evidence.Slots, 1e-6)
	r = measured("a", steady(4, 0, func(_ int, q *arrivals.Request) { q.Seconds = 64 }))
	require.InDelta(t, 45, r.evidence.Slots, 1e-3)
	r = measured("a", steady(4, 0, func(_ int, q *arrivals.Request) { q.Seconds = 100 }))
	require.InDelta(t, 28.8, r.evidence.Slots, 1e-3, "the last one is cut")
	require.Less(t, r.Low, 0.95, "48 minutes are too short for requests of a minute")
}

func TestMeasure_SaysWhyARunIsUndecided(t *testing.T) {
	for name, c := range map[string]struct {
		requests []arrivals.Request
		reason   Reason
	}{
		"no requests":  {nil, TooFew},
		"one request":  {steady(1, 0, nil)[:1], TooFew},
		"199 requests": {steady(1, 0, nil)[:249], TooFew},
		"200 requests": {steady(1, 0, nil)[:251], ""},
		"no verdicts":  {steady(1, 0, func(_ int, q *arrivals.Request) { q.Verdict = slo.NotEligible }), NotJudged},
		"twice the load in the second half": {steady(2, 0, func(i int, q *arrivals.Request) {
			if i > 2400 {
				q.Start = begin + int64(1200+(i-2400)/4)*int64(time.Second)
			}
		})[:7200], LoadVaried},
	} {
		t.Run(name, func(t *testing.T) {
			r := measured("a", c.requests)
			require.Equal(t, c.reason, r.Reason)
			require.Equal(t, Undecided, r.Verdict)
			l := Find([]Run{r}, 0.95)
			if c.reason != "" {
				require.Nil(t, l.Met)
				require.Equal(t, c.reason, l.Runs[0].Reason)
			}
		})
	}
}

func verdicts(l *Limit) (all []Verdict) {
	for i := range l.Runs {
		all = append(all, l.Runs[i].Verdict)
	}
	return all
}

func TestFind_IsBetweenTheLargestThatMetAndTheSmallestThatMissed(t *testing.T) {
	l := Find([]Run{
		measured("9", steady(9, 2, nil)), measured("3", steady(3, 0, nil)), measured("6", steady(6, 100, nil)), measured("7", steady(7, 20, nil)),
		measured("8", steady(8, 10, nil)), measured("2", steady(2, 0, nil)),
	}, 0.95)
	require.Empty(t, l.Reason)
	require.Equal(t, []Verdict{Met, Met, Met, Undecided, Missed, Missed}, verdicts(l), "by load")
	require.Equal(t, "6", l.Met.Name)
	require.Equal(t, "8", l.Missed.Name)
	require.Equal(t, TooFew, l.Runs[3].Reason, "5%% are bad, which is what the objective allows")
}

// Minutes decide nothing alone. But what is met at higher loads is met at lower ones, too.
func TestFind_ShortRunsAreEvidenceTogether(t *testing.T) {
	short := func(name string, perSecond int) Run { return measured(name, steady(perSecond, 0, nil)[:240*perSecond]) }
	one := Find([]Run{short("2", 2)}, 0.95)
	require.Equal(t, TooFew, one.Reason)
	require.InDelta(t, 10*time.Minute, one.Runs[0].Needs(0.95), float64(2*time.Minute))
	three := Find([]Run{short("2", 2), short("3", 3), short("4", 4)}, 0.95)
	require.Equal(t, []Verdict{Met, Undecided, Undecided}, verdicts(three))
	require.Equal(t, KneeNotSeen, three.Reason)
}

func TestFind_SaysWhyThereIsNoLimit(t *testing.T) {
	good, bad := measured("good", steady(3, 0, nil)), measured("bad", steady(6, 3, nil))
	for name, c := range map[string]struct {
		runs   []Run
		reason Reason
	}{
		"all loads met it":        {[]Run{good, measured("more", steady(4, 0, nil))}, KneeNotSeen},
		"all loads missed it":     {[]Run{bad}, NeverMet},
		"a higher load met it":    {[]Run{bad, measured("more", steady(7, 0, nil))}, NotMonotone},
		"answers are twice":       {[]Run{good, measured("long", steady(6, 3, func(_ int, q *arrivals.Request) { q.Output = 200 }))}, MixChanged},
		"prompts are twice":       {[]Run{good, measured("long", steady(6, 3, func(_ int, q *arrivals.Request) { q.Prompt = 1600 }))}, MixChanged},
		"the client sees one run": {[]Run{good, Measure("client", steady(6, 3, nil), timeline.VantageClient, 0)}, OtherView},
		"nothing is decided":      {[]Run{measured("edge", steady(3, 20, nil))}, TooFew},
	} {
		t.Run(name, func(t *testing.T) {
			l := Find(c.runs, 0.95)
			require.Equal(t, c.reason, l.Reason)
			switch c.reason {
			case KneeNotSeen:
				require.NotNil(t, l.Met)
			case NeverMet:
				require.NotNil(t, l.Missed)
			default:
				require.Nil(t, l.Met)
				require.Nil(t, l.Missed)
			}
			var out strings.Builder
			require.NoError(t, (&Answer{SLO: "all", Limit: l}).WriteTable(&out))
			require.Contains(t, out.String(), map[Reason]string{
				KneeNotSeen: "The limit of a replica is at least 2.00 requests/s (more). No run missed",
				NeverMet:    "The limit of a replica is below 3.00 requests/s",
				NotMonotone: "bad missed the objective, but more met it at a higher load",
				MixChanged:  "Means are 100 output tokens and 600 prompt tokens not cached in good, ",
				OtherView:   `good by "engine", client by "client"`,
				TooFew:      "No limit: no run is decided",
			}[c.reason])
		})
	}
}

// limit returns one of 2 requests, 200 output and 1,200 prompt tokens per second.
func limitOf(t *testing.T) *Limit {
	t.Helper()
	l := Find([]Run{measured("met", steady(4, 0, nil)), measured("missed", steady(6, 3, nil))}, 0.95)
	require.Empty(t, l.Reason)
	return l
}

func TestNeeded_OfRequests(t *testing.T) {
	l := limitOf(t)
	for perSecond, replicas := range map[float64]int{0.1: 1, 2: 1, 2.001: 2, 40: 20, 41: 21} {
		require.Equal(t, replicas, l.ForRequests(perSecond).Replicas, perSecond)
	}
}

func trace(seconds int, perSecond func(second int) int, output, input uint32) *workload.Trace {
	t := &workload.Trace{}
	for s := range seconds {
		for i := range perSecond(s) {
			t.Requests = append(t.Requests, workload.Request{Timestamp: int64(s)*1000 + int64(i), Output: output, Input: input})
		}
	}
	return t
}

// A base of 4 requests/s takes 2 replicas. A minute with 20 is 4 + 16(1 - 1/e) = 14.1 as the average of a minute, and 4 + 16(1 - e^-0.1) = 5.5
// as that of ten.
func TestNeeded_OfAWorkload(t *testing.T) {
	l := limitOf(t)
	burst := trace(7200, func(s int) int {
		if 3600 <= s && s < 3660 {
			return 20
		}
		return 4
	}, 100, 1000)
	n := l.ForTrace(burst)
	require.True(t, n.Fits)
	require.InDelta(t, 5.5, n.Sustained.Load[capacity.Requests], 0.1)
	require.Equal(t, 3, n.Sustained.Replicas)
	require.InDelta(t, 14.1, n.Minute.Load[capacity.Requests], 0.1)
	require.Equal(t, 8, n.Minute.Replicas)

	require.InDelta(t, 600*5.5, n.Sustained.Load[capacity.PromptTokens], 60, "400 of 1,000 are cached, as in the runs")

	short := l.ForTrace(trace(301, func(int) int { return 4 }, 100, 1000))
	require.InDelta(t, 1203/300.003, short.Sustained.Load[capacity.Requests], 1e-6, "from the first request to the last one")
	require.Equal(t, 5*time.Minute, short.Duration.Round(time.Second))

	require.False(t, l.ForTrace(trace(60, func(int) int { return 4 }, 200, 1000)).Fits)
	require.False(t, l.ForTrace(trace(60, func(int) int { return 4 }, 100, 600)).Fits)
	long := l.ForTrace(trace(1200, func(int) int { return 4 }, 100, 1400))
	require.True(t, long.Fits)
	require.Equal(t, 3, long.Sustained.Replicas, "3,360 prompt tokens/s that are not cached")
}

func TestAnswer_JSON(t *testing.T) {
	l := limitOf(t)
	needed := l.ForRequests(40)
	text, err := json.Marshal(&Answer{SLO: "all", Limit: l, Load: &needed, Trace: l.ForTrace(trace(60, func(int) int { return 3 }, 100, 1000))})
	require.NoError(t, err)
	var a struct {
		SLO           string
		Objective     float64
		Limit, Missed struct {
			Run      string
			Requests float64
			Prompt   float64 `json:"prompt_tokens"`
		}
		Reason *string
		Runs   []struct {
			Verdict    string
			Attainment float64
			Low        float64 `json:"attainment_low"`
		}
		Load struct {
			Replicas int `json:"replicas_needed"`
		}
		Workload struct {
			Fits      bool
			Sustained struct {
				Replicas int `json:"replicas_needed"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &a))
	require.Equal(t, "all", a.SLO)
	require.InDelta(t, 0.95, a.Objective, 0)
	require.Equal(t, "met", a.Limit.Run)
	require.InDelta(t, 2, a.Limit.Requests, 1e-9)
	require.InDelta(t, 1200, a.Limit.Prompt, 1e-6)
	require.InDelta(t, 3, a.Missed.Requests, 1e-9)
	require.Nil(t, a.Reason)
	require.Len(t, a.Runs, 2)
	require.InDelta(t, 1, a.Runs[0].Attainment, 0)
	require.Greater(t, a.Runs[0].Low, 0.95)
	require.Equal(t, 20, a.Load.Replicas)
	require.True(t, a.Workload.Fits)
	require.Equal(t, 2, a.Workload.Sustained.Replicas)
}
