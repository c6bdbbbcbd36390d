// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// Each minute of the last 50 has one request more than the one before: minute i, counted from the oldest, has i.
func TestEnd_RangeCoversTheTimeBeforeIt(t *testing.T) {
	now := time.Now().Truncate(time.Minute)
	begin := now.Add(-50 * time.Minute)
	page, engine := pageAt(now)
	page.OpenStreams.Set(page, func(_ inprocess.Labels, visit func(*inprocess.OpenStream)) { visit(new(inprocess.OpenStream)) })
	for minute := range 50 {
		at := begin.Add(time.Duration(minute) * time.Minute)
		for range minute {
			request := &series.Contribution{Dimensions: []string{fmt.Sprint("model-", minute%2)}, Arrival: at}
			request.SetValue(numbers.RequestDuration, 1/(1+math.Abs(float64(minute)-30))) // the slowest are at the end
			request.Verdicts.Add("fast", slo.Good)
			engine.Record(request)
			page.Slowest.Add(request, nil, slowest.Facts{})
			page.Tracker.Record([]byte("key"), &request.Verdicts, at)
		}
	}
	page.Slowest.Maintain(now) // removes those that are older than 5 minutes from the list of 5 minutes

	type answer struct {
		Time          float64
		Range         string
		WindowSeconds float64  `json:"window_seconds"`
		Rate          float64  `json:"requests_per_second"`
		OpenStreams   *float64 `json:"open_streams"`
		Requests      map[string]int
		SLOs          []struct {
			Good      int
			BurnRates []any    `json:"burn_rates"`
			Budget    *float64 `json:"budget_remaining"`
			Objective float64
		}
	}
	ask := func(query string) (a answer) {
		w := httptest.NewRecorder()
		page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/"+query, http.NoBody))
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a))
		return a
	}
	end := begin.Add(30 * time.Minute)
	sum := func(from, to int) (n int) {
		for minute := from; minute < to; minute++ {
			n += minute
		}
		return n
	}
	for query, want := range map[string]int{
		fmt.Sprintf("now?range=10m&end=%d", end.Unix()):                 sum(20, 30),
		fmt.Sprintf("now?range=1h&end=%d", end.Unix()):                  sum(0, 30),
		fmt.Sprintf("now?range=10m&end=%d&where=m=model-1", end.Unix()): 21 + 23 + 25 + 27 + 29,
		fmt.Sprintf("now?range=1m&end=%d", begin.Unix()):                0,
		"now?range=15m":                       sum(35, 50),
		"now?range=15m&end=9999999999":        sum(35, 50),
		"now?range=1h":                        sum(0, 50),
		fmt.Sprintf("now?end=%d", now.Unix()): sum(45, 50),
	} {
		require.Equal(t, want, ask(query).Requests["success"], query)
	}

	ended := ask(fmt.Sprintf("now?range=10m&end=%d", end.Unix()))
	require.InDelta(t, end.Unix(), ended.Time, 0)
	require.Equal(t, "10m", ended.Range)
	require.InDelta(t, 600, ended.WindowSeconds, 0, "the rates are those of the range")
	require.InDelta(t, float64(sum(20, 30))/600, ended.Rate, 1e-9)
	require.Nil(t, ended.OpenStreams)
	require.Equal(t, sum(20, 30), ended.SLOs[1].Good)
	require.InDelta(t, 0.9, ended.SLOs[1].Objective, 0)
	require.Empty(t, ended.SLOs[1].BurnRates, "known for the present only")
	require.Nil(t, ended.SLOs[1].Budget)
	live := ask("now?range=10m")
	require.NotNil(t, live.OpenStreams)
	require.Len(t, live.SLOs[1].BurnRates, 5)

	var slowest struct{ Requests []struct{ Time float64 } }
	w := httptest.NewRecorder()
	page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/v1/requests?limit=100&range=5m&end=%d", end.Unix()), http.NoBody))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &slowest))
	require.NotEmpty(t, slowest.Requests)
	for _, r := range slowest.Requests {
		require.WithinRange(t, time.Unix(int64(r.Time), 0), end.Add(-5*time.Minute), end)
	}

	var trends struct{ Times []float64 }
	w = httptest.NewRecorder()
	page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/v1/trends?range=10m&end=%d", end.Unix()), http.NoBody))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &trends))
	require.InDelta(t, end.Add(-10*time.Minute).Unix(), trends.Times[0], 0)
	require.InDelta(t, end.Unix(), trends.Times[len(trends.Times)-1], 60)
}

// Slots older than a day are two hours wide. Whatever part of the past a question is about, the answer names the range that it
// is for, and has the requests of this range: one hour that ended 31 hours ago is answered for two or four hours.
func TestEnd_AnswersForWholeSlotsAndNamesThem(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	page, engine := pageAt(now)
	random := rand.New(rand.NewPCG(7, 8))
	var arrivals []time.Time
	for at := now.Add(-50 * time.Hour); at.Before(now); at = at.Add(time.Duration(1+random.IntN(120)) * time.Second) {
		request := &series.Contribution{Dimensions: []string{"llama"}, Arrival: at}
		request.SetValue(numbers.RequestDuration, 1)
		request.SetValue(numbers.InputTokens, 100)
		request.SetValue(numbers.TimeToFirstToken, 0.5)
		request.SetValue(numbers.OutputTokens, 20)
		engine.Record(request)
		page.Slowest.Add(request, nil, slowest.Facts{})
		arrivals = append(arrivals, at)
	}
	engine.Fold(now)
	page.History.Maintain(now)

	type answer struct {
		From, To int64
		Times    []int64
		Total    struct {
			Speed []*float64 `json:"requests_per_second"`
		}
		Groups  []struct{ Requests int }
		Buckets []struct{ Uncached struct{ Count int } }
		Counts  [][]int
		Step    int64 `json:"step_seconds"`
		Slot    int64 `json:"slot_seconds"`
		Flight  struct {
			Points []struct{ Requests int }
		} `json:"in_flight"`
	}
	ask := func(endpoint, query string, into any) {
		page.answers = newAnswers()
		get(t, page, endpoint+"?"+query, into)
	}
	check := func(length time.Duration, end time.Time) (from, to int64) {
		query := fmt.Sprintf("range=%ds&end=%d", int(length.Seconds()), end.Unix())
		var first struct {
			answer
			Flight   float64        `json:"in_flight"`
			Requests map[string]int `json:"requests"`
			Rate     float64        `json:"requests_per_second"`
			Window   float64        `json:"window_seconds"`
		}
		ask("now", query, &first)
		from, to = first.From, first.To
		want := 0
		for _, at := range arrivals {
			if from <= at.Unix() && at.Unix() < to {
				want++
			}
		}
		require.Equal(t, want, first.Requests["success"], query)
		require.LessOrEqual(t, from, end.Add(-length).Unix(), query)
		require.GreaterOrEqual(t, to, min(end.Unix(), now.Unix()), query)
		require.LessOrEqual(t, to, now.Unix(), query)
		require.InDelta(t, float64(want), first.Rate*first.Window, 1e-6, query)
		for _, endpoint := range []string{"trends", "distributions", "heatmap", "load", "prompts", "worst"} {
			var a answer
			ask(endpoint, query+map[string]string{"heatmap": "&indicator=request_duration"}[endpoint], &a)
			require.Equal(t, []int64{from, to}, []int64{a.From, a.To}, "%s?%s", endpoint, query)
			got := want
			switch endpoint {
			case "trends", "distributions":
				got = 0
				for _, g := range a.Groups {
					got += g.Requests
				}
			case "heatmap":
				got = 0
				for _, step := range a.Counts {
					for _, n := range step {
						got += n
					}
				}
			case "prompts":
				got = 0
				for _, b := range a.Buckets {
					got += b.Uncached.Count
				}
			case "load": // it leaves out a step that is not over
				if to%a.Slot == 0 {
					got = 0
					for _, point := range a.Flight.Points {
						got += point.Requests
					}
				}
			}
			require.Equal(t, want, got, "%s?%s", endpoint, query)
			if endpoint == "trends" {
				total := 0.0
				for i, speed := range a.Total.Speed {
					if speed != nil {
						total += *speed * float64(min(a.Times[i]+a.Step, to)-max(a.Times[i], now.Add(-50*time.Hour).Truncate(2*time.Hour).Unix()))
					}
				}
				require.InDelta(t, float64(want), total, 1e-6, query)
			}
		}
		return from, to
	}
	from, to := check(time.Hour, now.Add(-31*time.Hour))
	require.Contains(t, []int64{2 * 3600, 4 * 3600}, to-from)
	require.Zero(t, from%(2*3600))
	for range 100 {
		check(time.Duration(60+random.IntN(20*3600))*time.Second, now.Add(-time.Duration(random.IntN(49*3600))*time.Second))
	}
}
