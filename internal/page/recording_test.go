// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// recordingPage returns a page of requests of two models that ended at random times of a range, in any order.
func recordingPage(t *testing.T, begin time.Time, length time.Duration, requests int) *Page {
	t.Helper()
	page, _ := pageAt(time.Now())
	page.History = history.New(1 << 30)
	page.Engine = series.NewEngine(series.Options{Config: series.Config{Dimensions: page.Dimensions, MaxSeries: 10}, History: page.History, AnyOrder: true})
	page.Recording = &Recording{Begin: begin, End: begin.Add(length)}
	page.OpenStreams.Set(page, func(_ inprocess.Labels, visit func(*inprocess.OpenStream)) { visit(new(inprocess.OpenStream)) })
	random := rand.New(rand.NewPCG(1, 2))
	for i := range requests {
		at := begin.Add(time.Second + time.Duration(random.Int64N(int64(length-time.Second))))
		if i == 0 {
			at = page.Recording.End
		}
		r := &series.Contribution{Dimensions: []string{fmt.Sprint("model-", i%2)}, Arrival: at}
		r.SetValue(numbers.RequestDuration, 2)
		page.Engine.Record(r)
		page.Slowest.Add(r, nil, slowest.Facts{})
	}
	return page
}

// The numbers of a recording are those of all its requests, however long ago and in however long a time, and its rates are
// over exactly this time.
func TestRecording_AnswersAreAboutAllOfIt(t *testing.T) {
	begin := time.Date(2026, 1, 12, 10, 7, 2, 0, time.UTC)
	for _, length := range []time.Duration{3 * time.Second, 65 * time.Minute, 40 * time.Hour, 40 * 24 * time.Hour, 3 * 365 * 24 * time.Hour} {
		t.Run(length.String(), func(t *testing.T) {
			const requests = 400
			page := recordingPage(t, begin, length, requests)
			for _, question := range []string{"now", "now?range=5m&end=1"} {
				var now struct {
					From, To, Flight float64
					Window           float64 `json:"window_seconds"`
					Rate             float64 `json:"requests_per_second"`
					InFlight         float64 `json:"in_flight"`
					OpenStreams      *int    `json:"open_streams"`
					Requests         map[string]int
				}
				get(t, page, question, &now)
				require.Equal(t, requests, now.Requests["success"])
				require.InDelta(t, float64(begin.Unix()), now.From, 0)
				require.InDelta(t, float64(begin.Add(length).Unix()), now.To, 0)
				require.InDelta(t, length.Seconds(), now.Window, 0)
				require.InDelta(t, requests/length.Seconds(), now.Rate, 1e-9)
				require.InDelta(t, 2*requests/length.Seconds(), now.InFlight, 1e-9)
				require.Nil(t, now.OpenStreams, "a recording has no present")
			}
			var trends struct {
				Step  float64 `json:"step_seconds"`
				Times []float64
				Total struct {
					Rate []*float64 `json:"requests_per_second"`
				}
				Groups []struct{ Requests int }
			}
			get(t, page, "trends", &trends)
			require.LessOrEqual(t, len(trends.Times), maxSteps+2)
			require.GreaterOrEqual(t, len(trends.Times), min(int(length/series.HistorySlot), 33))
			require.Len(t, trends.Groups, 2)
			all := 0.0
			for i, rate := range trends.Total.Rate {
				if rate == nil {
					continue
				}
				from, to := max(trends.Times[i], float64(begin.Unix())), min(trends.Times[i]+trends.Step, float64(begin.Add(length).Unix()))
				all += *rate * max(1, to-from)
			}
			require.InDelta(t, requests, all, 1e-6, "steps at both ends are as long as the recording")

			var slow struct{ Requests []struct{} }
			get(t, page, "requests?limit=100", &slow)
			require.Len(t, slow.Requests, 100)
			var meta struct {
				History    struct{ Since float64 }
				Dimensions []struct{ Values []string }
			}
			get(t, page, "meta", &meta)
			require.InDelta(t, float64(begin.Unix()), meta.History.Since, 0)
			require.Equal(t, []string{"model-0", "model-1"}, meta.Dimensions[0].Values)
		})
	}
}

func TestRecording_EmptyOneHasNoHistory(t *testing.T) {
	page, _ := pageAt(time.Now())
	page.Recording = new(Recording)
	var meta struct{ History struct{ Since *float64 } }
	get(t, page, "meta", &meta)
	require.Nil(t, meta.History.Since)
	var now struct{ Requests map[string]int }
	get(t, page, "now", &now)
	require.Zero(t, now.Requests["success"])
}
