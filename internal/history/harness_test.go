// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// world feeds a history through a real engine, and remembers every request.
type world struct {
	engine *series.Engine
	store  *Store
	random *rand.Rand
	now    time.Time
	ttfts  []sample
}

// sample is one request.
type sample struct {
	at         time.Time
	model      string
	outcome    series.Outcome
	ttft, tpot float64
	prompt     int // tokens
	cached     bool
}

// newWorld starts 2 s into an hour, so that slots begin and end alike in each run.
func newWorld(t testing.TB, limit int) *world {
	t.Helper()
	w := &world{store: New(limit), random: rand.New(rand.NewPCG(1, uint64(limit))), now: time.Now().Truncate(time.Hour).Add(time.Hour + 2*time.Second)}
	w.engine = series.NewEngine(series.Options{
		Config:  series.Config{Dimensions: series.DimensionsOf("gen_ai.request.model"), MaxSeries: 1000, SeriesExpiration: time.Hour},
		Windows: []time.Duration{5 * time.Minute}, Quantiles: []float64{0.5}, History: w.store,
	})
	return w
}

// request records a request of a model, with any outcome.
func (w *world) request(model string) { w.record(model, series.Outcome(w.random.IntN(4))) }

// success records a successful request of a model.
func (w *world) success(model string) { w.record(model, series.Success) }

func (w *world) record(model string, outcome series.Outcome) {
	ttft, tpot := math.Exp(w.random.NormFloat64()), 0.02*math.Exp(0.3*w.random.NormFloat64())
	r := &series.Contribution{Dimensions: []string{model}, Vantage: "server", Outcome: outcome, Arrival: w.now}
	r.SetValue(numbers.TimeToFirstToken, ttft)
	r.SetValue(numbers.TimePerOutputToken, tpot)
	r.SetValue(numbers.RequestDuration, ttft+5*w.random.Float64())
	r.SetValue(numbers.QueueDuration, ttft/10)
	r.SetValue(numbers.PrefillDuration, ttft*9/10)
	r.SetValue(numbers.DecodeDuration, 5*w.random.Float64())
	var gaps sketch.Sketch
	for range 20 {
		gaps.Add(0.02*math.Exp(0.5*w.random.NormFloat64()), 10)
	}
	*r.Distribution(numbers.InterTokenLatency) = series.Distribution{Sketch: gaps.AppendBinary(nil)}
	prompt, cached := 1+w.random.IntN(5000), w.random.IntN(2)
	r.SetValue(numbers.InputTokens, float64(prompt))
	r.SetValue(numbers.CachedInputTokens, float64(cached))
	r.SetValue(numbers.OutputTokens, 200)
	r.Verdicts.Add("ttft", slo.Verdict(w.random.IntN(3)))
	w.engine.Record(r)
	w.ttfts = append(w.ttfts, sample{w.now, model, r.Outcome, ttft, tpot, prompt, cached > 0})
}

// run sends a number of requests of each model per step until some time is over.
func (w *world) run(length, step time.Duration, models, each int) {
	for end := w.now.Add(length); w.now.Before(end); w.now = w.now.Add(step) {
		for i := range models * each {
			w.request(fmt.Sprint("model-", i%models))
		}
		w.maintain()
	}
}

func (w *world) maintain() {
	w.engine.Expire(w.now)
	w.store.Maintain(w.now)
}

// forever is later than any request.
var forever = time.Unix(1<<40, 0)

// sum adds up all series of the view since a time.
func (w *world) sum(since time.Time, want *Want) *Sum {
	w.engine.Fold(w.now)
	view := w.store.View(since, forever)
	sum := new(Sum)
	for slot := range view.Slots() {
		slot.AddTo(func(Key) *Sum { return sum }, want)
	}
	return sum
}

// expect returns the times to first token of the requests that pass, sorted.
func (w *world) expect(pass func(*sample) bool) []float64 {
	return w.expectOf(func(s *sample) float64 { return s.ttft }, pass)
}

// expectOf returns a number of the requests that pass, sorted.
func (w *world) expectOf(number func(*sample) float64, pass func(*sample) bool) (values []float64) {
	for i := range w.ttfts {
		if pass(&w.ttfts[i]) {
			values = append(values, number(&w.ttfts[i]))
		}
	}
	slices.Sort(values)
	return values
}

// requireSame compares a distribution with the sorted values that it has to have: their
// number, sum and limits, and each percentile by nearest rank, within 0.55%.
func requireSame(t *testing.T, values []float64, s *sketch.Sketch) {
	t.Helper()
	require.Equal(t, uint64(len(values)), s.Count())
	if len(values) == 0 {
		return
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	require.InEpsilon(t, sum, s.Sum(), 1e-9)
	require.Equal(t, values[0], s.Min())
	require.Equal(t, values[len(values)-1], s.Max())
	for _, q := range []float64{0.01, 0.5, 0.9, 0.95, 0.99, 0.999} {
		exact := values[max(0, int(math.Ceil(q*float64(len(values))-1e-9))-1)]
		require.InEpsilon(t, exact, s.Quantile(q), 0.0055, "%v", q)
	}
}
