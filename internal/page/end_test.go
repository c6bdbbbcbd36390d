// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"math"
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
