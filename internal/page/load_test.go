// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// finished is what is known of a request from its span.
type finished struct {
	at                   time.Time
	duration, ttft, tpot float64
	tokens               float64
	good                 bool
}

// curvePoint is a point of a load curve, computed without the code under test: each slot's
// load is its sum of durations by its length, loads are binned by quarters of a doubling.
type curvePoint struct {
	loads    []float64
	ttfts    []float64
	tpots    []float64
	good, of int
}

func expectedCurve(all []finished, width time.Duration, now time.Time, load func(slot []finished) float64) map[int]*curvePoint {
	slots := map[int64][]finished{}
	for _, r := range all {
		start := r.at.Unix() / int64(width.Seconds())
		slots[start] = append(slots[start], r)
	}
	curve := map[int]*curvePoint{}
	for start, requests := range slots {
		if end := (start + 1) * int64(width.Seconds()); end > now.Unix() {
			continue
		}
		l := load(requests)
		bin := 0
		for math.Pow(2, float64(bin)/4) < l {
			bin++
		}
		for math.Pow(2, float64(bin-1)/4) >= l {
			bin--
		}
		p := curve[bin]
		if p == nil {
			p = &curvePoint{}
			curve[bin] = p
		}
		p.loads = append(p.loads, l)
		for _, r := range requests {
			p.ttfts, p.tpots = append(p.ttfts, r.ttft), append(p.tpots, r.tpot)
			p.of++
			if r.good {
				p.good++
			}
		}
	}
	return curve
}

// pageAt returns a page whose clock stands still, with an objective of 0.9 for the SLO fast, and the engine of its
// history.
func pageAt(now time.Time) (*Page, *series.Engine) {
	return pageWith(now, series.Config{Dimensions: series.DimensionsOf("m"), MaxSeries: 10})
}

func pageWith(now time.Time, config series.Config) (*Page, *series.Engine) {
	store := history.New(1 << 30)
	objectives := []slo.Objective{{SLO: "fast", Objective: 0.9, Window: time.Hour}}
	engine := series.NewEngine(series.Options{Config: config, History: store, Objectives: slo.NamesOf(objectives)})
	return New(Options{
		Dimensions: config.Dimensions, Objectives: objectives, Engine: engine, History: store, Slowest: slowest.New(0),
		Tracker: slo.NewTracker(slo.TrackerOptions{Objectives: objectives, MaxSeries: config.MaxSeries}, now), Thresholds: new(Thresholds),
		OpenStreams: new(inprocess.Registry[inprocess.VisitOpenStreams]), Endpoints: new(inprocess.Registry[[]inprocess.Endpoint]), SLOs: new(inprocess.Registry[[]slo.Definition]),
		Doubts: new(inprocess.Registry[*diagnostics.Doubts]), Engines: func() []liveness.Status { return nil }, Comparisons: compare.New(nil, nil),
		Requests: httpguard.NewShares(MaxWaiting, httpguard.DefaultShare), Now: func() time.Time { return now },
	}), engine
}

func TestLoad_EqualsOneComputedFromTheRequests(t *testing.T) {
	now := time.Now().Truncate(time.Minute).Add(30 * time.Second)
	clock := now.Add(-55 * time.Minute)
	page, engine := pageAt(now)
	random := rand.New(rand.NewPCG(5, 6))
	var all []finished
	first := true
	for minute := 0; !clock.After(now); minute++ { // the last minute is not over
		for range 1 + random.IntN(1+minute) { // more load, and then less good
			at := clock.Add(time.Duration(random.IntN(5000)) * time.Millisecond).Truncate(5 * time.Second)
			if first { // slots count from the first request on
				at, first = clock.Truncate(time.Minute), false
			}
			r := finished{at: at, duration: 1 + 9*random.Float64(), ttft: random.ExpFloat64(), tpot: random.Float64(), tokens: float64(random.IntN(500)), good: random.IntN(60) > minute}
			all = append(all, r)
		}
		clock = clock.Add(time.Minute)
	}
	slices.SortFunc(all, func(a, b finished) int { return a.at.Compare(b.at) })
	for _, r := range all {
		request := &series.Contribution{Dimensions: []string{"llama"}, Arrival: r.at}
		request.SetValue(numbers.RequestDuration, r.duration)
		request.SetValue(numbers.TimeToFirstToken, r.ttft)
		request.SetValue(numbers.TimePerOutputToken, r.tpot)
		request.SetValue(numbers.OutputTokens, r.tokens)
		verdict := slo.Bad
		if r.good {
			verdict = slo.Good
		}
		request.Verdicts.Add("fast", verdict)
		engine.Record(request)
	}

	w := httptest.NewRecorder()
	page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/load?range=1h", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	type curve struct {
		Points []struct {
			Load, From, To     float64
			Slots, Requests    int
			TimeToFirstToken   map[string]float64 `json:"time_to_first_token"`
			TimePerOutputToken map[string]float64 `json:"time_per_output_token"`
			SLOs               []struct {
				SLO        string
				Good, Bad  int
				Attainment float64
			}
		}
		SLOs []struct {
			LargestLoad *float64 `json:"largest_load"`
		}
	}
	var answer struct {
		InFlight   curve `json:"in_flight"`
		Throughput curve `json:"output_tokens_per_second"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	sum := func(slot []finished, of func(finished) float64) (s float64) {
		for _, r := range slot {
			s += of(r)
		}
		return s / 60
	}
	for name, test := range map[string]struct {
		got  curve
		load func([]finished) float64
	}{
		"requests in flight": {answer.InFlight, func(slot []finished) float64 { return sum(slot, func(r finished) float64 { return r.duration }) }},
		"tokens per second":  {answer.Throughput, func(slot []finished) float64 { return sum(slot, func(r finished) float64 { return r.tokens }) }},
	} {
		want := expectedCurve(all, time.Minute, now, test.load)
		require.Len(t, test.got.Points, len(want), name)
		require.Greater(t, len(want), 4)
		largest, met := math.NaN(), true
		for _, got := range test.got.Points {
			point := want[int(math.Round(math.Log2(got.To)*4))]
			require.NotNil(t, point, "%s: %v", name, got)
			mean := 0.0
			for _, l := range point.loads {
				mean += l / float64(len(point.loads))
			}
			require.InEpsilon(t, mean, got.Load, 1e-9, name)
			require.Equal(t, len(point.loads), got.Slots, name)
			require.Equal(t, len(point.ttfts), got.Requests, name)
			require.InEpsilon(t, math.Exp2(0.25), got.To/got.From, 1e-9, name)
			requireSummary(t, point.ttfts, got.TimeToFirstToken)
			requireSummary(t, point.tpots, got.TimePerOutputToken)
			attainment := float64(point.good) / float64(point.of)
			for _, s := range got.SLOs {
				require.InDelta(t, attainment, s.Attainment, 1e-12, "%s: %s", name, s.SLO)
				require.Equal(t, [2]int{point.good, point.of - point.good}, [2]int{s.Good, s.Bad}, "%s: %s", name, s.SLO)
			}
			if met = met && attainment >= 0.9; met {
				largest = got.Load
			}
		}
		if math.IsNaN(largest) {
			require.Nil(t, test.got.SLOs[0].LargestLoad, name)
		} else {
			require.InDelta(t, largest, *test.got.SLOs[0].LargestLoad, 1e-9, name)
		}
	}
}

func requireSummary(t *testing.T, values []float64, got map[string]float64) {
	t.Helper()
	slices.Sort(values)
	n, sum := float64(len(values)), 0.0
	for _, v := range values {
		sum += v
	}
	require.InDelta(t, n, got["count"], 0)
	for statistic, want := range map[string]float64{"mean": sum / n, "min": values[0], "max": values[len(values)-1]} {
		require.InEpsilon(t, want, got[statistic], 1e-9, statistic)
	}
	for percentile, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		require.InEpsilon(t, values[int(math.Ceil(q*n-1e-9))-1], got[percentile], 0.0055, percentile)
	}
}
