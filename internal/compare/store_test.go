// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	dimensions = []string{"model", "version"}
	t0         = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
)

func bySLO(slo string) Question {
	q := Question{Pair: Pair{Dimension: "version", Baseline: "old", Candidate: "new", SLO: slo}}
	q.SetDefaults()
	return q
}

func byPercentile() Question {
	q := Question{Pair: Pair{Dimension: "version", Baseline: "old", Candidate: "new", Indicator: "time_to_first_token", Percentile: 95}}
	q.SetDefaults()
	return q
}

// request is a request of a version a moment after t0.
func request(version string, change func(*series.Contribution)) *Request {
	r := &series.Contribution{Dimensions: []string{"m", version}, Vantage: "engine", Arrival: t0.Add(time.Second)}
	if change != nil {
		change(r)
	}
	r.Verdicts.End(slo.Finished)
	return &Request{Contribution: r, Start: t0.Add(time.Second), Replica: func() string { return "r" }}
}

// arms asks when all windows are closed.
func arms(t *testing.T, s *Store, q Question) (baseline, candidate canary.ArmAnswer) {
	t.Helper()
	reply, err := s.Ask(&q, t0.Add(10*time.Minute))
	require.NoError(t, err)
	return reply.Baseline, reply.Candidate
}

// Each row is one request of the candidate, and what it counts for.
func TestStore_CountsRequests(t *testing.T) {
	verdict := func(v slo.Verdict) func(*series.Contribution) {
		return func(r *series.Contribution) { r.Verdicts.Add("tpot", v) }
	}
	for name, c := range map[string]struct {
		question      Question
		change        func(*series.Contribution)
		requests, bad uint64
	}{
		"good":                         {bySLO("tpot"), verdict(slo.Good), 1, 0},
		"bad":                          {bySLO("tpot"), verdict(slo.Bad), 1, 1},
		"not eligible":                 {bySLO("tpot"), verdict(slo.NotEligible), 1, 0},
		"all":                          {bySLO("all"), verdict(slo.Bad), 1, 1},
		"an SLO that does not apply":   {bySLO("ttft"), verdict(slo.Bad), 0, 0},
		"a trace that is no request":   {bySLO("tpot"), func(r *series.Contribution) { verdict(slo.Bad)(r); r.TraceOnly = true }, 0, 0},
		"another vantage":              {bySLO("tpot"), func(r *series.Contribution) { verdict(slo.Bad)(r); r.Vantage = "client" }, 0, 0},
		"a percentile":                 {byPercentile(), func(r *series.Contribution) { r.SetValue(numbers.TimeToFirstToken, 0.2) }, 1, 0},
		"a percentile without a value": {byPercentile(), nil, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.question.Vantage = "engine"
			s := New(dimensions, []Question{c.question})
			s.Record(request("new", c.change))
			_, candidate := arms(t, s, c.question)
			require.Equal(t, c.requests, candidate.Requests)
			require.Equal(t, c.bad, candidate.Bad)
		})
	}
}

// A configured pair begins with the candidate's first request: what the baseline did before says nothing of it.
func TestStore_ConfiguredPairsBeginWithTheCandidate(t *testing.T) {
	q := bySLO("all")
	s := New(dimensions, []Question{q})
	bad := func(r *series.Contribution) { r.Verdicts.Add("tpot", slo.Bad) }
	s.Record(request("old", bad))
	s.Record(request("other", bad))
	reply, err := s.Ask(&q, t0)
	require.NoError(t, err)
	require.Zero(t, reply.Since)
	require.Contains(t, reply.Hint, "no request of the candidate")
	s.Record(request("new", bad))
	s.Record(request("old", bad))
	baseline, candidate := arms(t, s, q)
	require.EqualValues(t, 1, baseline.Requests)
	require.EqualValues(t, 1, candidate.Requests)
}

// Two vantages see the same request: that of the first one that is part of the evidence counts.
func TestStore_OneVantageCounts(t *testing.T) {
	q := bySLO("all")
	s := New(dimensions, []Question{q})
	s.Record(request("new", func(r *series.Contribution) { r.Vantage = "client" }))
	s.Record(request("new", func(r *series.Contribution) {
		r.Vantage = "client"
		r.TraceOnly = true
		r.Verdicts.Add("tpot", slo.Bad)
	}))
	s.Increase(&series.Increment{Dimensions: []string{"m", "new"}, Vantage: "client", Arrival: t0, Time: t0, Part: series.PartVerdicts, SLO: "other"})
	for _, vantage := range []string{"gateway", "engine", "gateway"} {
		s.Record(request("new", func(r *series.Contribution) { r.Vantage = vantage; r.Verdicts.Add("tpot", slo.Bad) }))
	}
	_, candidate := arms(t, s, q)
	require.EqualValues(t, 2, candidate.Requests)
	reply, err := s.Ask(&q, t0.Add(10*time.Minute))
	require.NoError(t, err)
	require.Equal(t, "gateway", reply.Vantage)
}

// Data points add up to the same as the requests they stand for.
func TestStore_CountsDataPoints(t *testing.T) {
	values := new(sketch.Sketch)
	values.Add(0.2, 7)
	point := func(i series.Increment) *series.Increment {
		i.Dimensions, i.Vantage, i.Arrival, i.Time, i.Replica = []string{"m", "new"}, "engine", t0.Add(time.Minute), t0.Add(time.Minute), "r"
		return &i
	}
	questions := []Question{bySLO("tpot"), byPercentile()}
	s := New(dimensions, questions)
	s.Increase(&series.Increment{Overflow: true})
	for _, i := range []series.Increment{
		{Part: series.PartRequests, Outcome: series.Success, Requests: 10},
		{Part: series.PartRequests, Outcome: series.Error, Requests: 2},
		{Part: series.PartVerdicts, SLO: "tpot", Verdict: slo.Good, Requests: 6},
		{Part: series.PartVerdicts, SLO: "tpot", Verdict: slo.Bad, Requests: 4},
		{Part: series.PartVerdicts, SLO: "tpot", Verdict: slo.NotEligible, Requests: 2},
		{Part: series.PartVerdicts, SLO: "ttft", Verdict: slo.Bad, Requests: 12},
		{Part: series.PartValues, Quantity: numbers.TimeToFirstToken, Values: values},
		{Part: series.PartValues, Quantity: numbers.RequestDuration, Values: values},
		{Part: series.PartCount, Count: series.Unmeasured(0, 0), Sum: 5},
		{Part: series.PartCount, Count: series.Unmeasured(1, 0), Sum: 9},
	} {
		s.Increase(point(i))
	}
	_, candidate := arms(t, s, questions[0])
	require.EqualValues(t, 12, candidate.Requests)
	require.EqualValues(t, 4, candidate.Bad)
	require.InDelta(t, 0.4, candidate.Estimate, 1e-9, "of the judged ones")
	require.Equal(t, 1, candidate.Replicas)
	_, candidate = arms(t, s, questions[1])
	require.EqualValues(t, 12, candidate.Requests)
	require.InEpsilon(t, 0.2, candidate.Estimate, 0.006)
}

// A pair begins once, however often it is begun: a tool may repeat a request whose answer was lost.
func TestStore_PairsBeginOnceAndEnd(t *testing.T) {
	bad := func(r *series.Contribution) { r.Verdicts.Add("tpot", slo.Bad) }
	for name, c := range map[string]struct {
		configured []Question
		after      error // of a question after the end
	}{
		"not configured": {nil, ErrUnknown},
		"configured":     {[]Question{bySLO("all")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := bySLO("all")
			s := New(dimensions, c.configured)
			_, err := s.Ask(&q, t0)
			require.Equal(t, c.after, err, "a question does not begin a pair")
			for i, at := range []time.Time{t0, t0.Add(time.Hour)} {
				reply, begun, err := s.Begin(&q, at)
				require.NoError(t, err)
				require.Equal(t, i == 0, begun)
				require.Equal(t, t0, reply.Since)
			}
			s.Record(request("new", bad))
			_, candidate := arms(t, s, q)
			require.EqualValues(t, 1, candidate.Requests)

			require.NoError(t, s.End(&q))
			reply, err := s.Ask(&q, t0.Add(time.Hour))
			require.Equal(t, c.after, err)
			require.Zero(t, reply.Since)
			require.Zero(t, reply.Candidate.Requests)
			s.Values().Saved(func(Key, Version, func() []byte) { t.Fatal("what ended is not stored") })
			reply, begun, err := s.Begin(&q, t0.Add(2*time.Hour))
			require.NoError(t, err)
			require.True(t, begun)
			require.Equal(t, t0.Add(2*time.Hour), reply.Since)
			s.Record(request("new", bad))
			reply, err = s.Ask(&q, t0.Add(3*time.Hour))
			require.NoError(t, err)
			require.Zero(t, reply.Candidate.Requests, "a request that started before the pair")
		})
	}
	q := bySLO("all")
	require.Equal(t, ErrUnknown, New(dimensions, nil).End(&q))
}

func TestStore_IsBounded(t *testing.T) {
	kept := bySLO("kept")
	s := New(dimensions, []Question{kept})
	begin := func(i int, now time.Time) error {
		q := bySLO(fmt.Sprintf("slo-%d", i))
		_, _, err := s.Begin(&q, now)
		return err
	}
	for i := range MaxPairs - 1 {
		require.NoError(t, begin(i, t0))
	}
	require.ErrorIs(t, begin(-1, t0.Add(24*time.Hour)), ErrFull)
	require.NoError(t, begin(0, t0.Add(24*time.Hour)), "a known pair")
	ended := bySLO("slo-1")
	require.NoError(t, s.End(&ended))
	require.NoError(t, begin(-1, t0.Add(24*time.Hour)), "another one ended")
	require.NoError(t, begin(-2, t0.Add(24*time.Hour+time.Second)), "no other one had a request in a day")
	var slos []string
	for _, pair := range s.Pairs() {
		slos = append(slos, pair.SLO)
	}
	require.Equal(t, []string{"kept", "slo--1", "slo--2"}, slos, "the configured one, and the two that began last")

	full := New(dimensions, nil)
	for i := range MaxPairs {
		q := bySLO(fmt.Sprintf("other-%d", i))
		_, _, err := full.Begin(&q, t0)
		require.NoError(t, err)
	}
	s.Values().Saved(func(k Key, _ Version, encode func() []byte) {
		require.ErrorIs(t, full.Values().Restore(k, encode()), ErrFull, "more pairs are stored than fit beside those of the configuration")
	})
}

// A pair ends if one of its arms has no request for a day: it can learn nothing more. Questions do not keep it.
func TestStore_EndsPairsWithAnIdleArm(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		versions []string // with a request in the 13th hour
		ends     time.Duration
	}{
		"no request":       {nil, day},
		"only a candidate": {[]string{"new"}, day},
		"only a baseline":  {[]string{"old"}, day},
		"both arms":        {[]string{"old", "new"}, 12*time.Hour + day},
	} {
		t.Run(name, func(t *testing.T) {
			q := bySLO("all")
			s := New(dimensions, nil)
			_, _, err := s.Begin(&q, t0)
			require.NoError(t, err)
			for _, version := range c.versions {
				r := request(version, func(r *series.Contribution) {
					r.Arrival = t0.Add(12 * time.Hour)
					r.Verdicts.Add("tpot", slo.Bad)
				})
				r.Start = r.Arrival
				s.Record(r)
			}
			s.EndIdle(t0.Add(c.ends))
			_, err = s.Ask(&q, t0.Add(c.ends))
			require.NoError(t, err)
			s.EndIdle(t0.Add(c.ends + time.Second))
			_, err = s.Ask(&q, t0.Add(c.ends+time.Second))
			require.Equal(t, ErrUnknown, err)
		})
	}
}

// After a restart, questions have the same answers.
func TestStore_RestoresEvidence(t *testing.T) {
	configured, asked, percentile := bySLO("all"), bySLO("tpot"), byPercentile()
	s := New(dimensions, []Question{configured})
	for _, q := range []Question{asked, percentile} {
		_, _, err := s.Begin(&q, t0)
		require.NoError(t, err)
	}
	for _, version := range []string{"old", "new"} {
		s.Record(request(version, func(r *series.Contribution) {
			r.Verdicts.Add("tpot", slo.Bad)
			r.SetValue(numbers.TimeToFirstToken, 0.1)
		}))
	}
	restored := New(dimensions, []Question{configured})
	other := New([]string{"model"}, nil)
	s.Values().Saved(func(k Key, _ Version, encode func() []byte) {
		require.NoError(t, restored.Values().Restore(k, encode()))
		require.NoError(t, other.Values().Restore(k, encode()))
		require.Error(t, restored.Values().Restore(k, encode()[:20]))
	})
	require.Empty(t, other.pairs, "the dimension is gone")
	without := New(dimensions, nil)
	s.Values().Saved(func(k Key, _ Version, encode func() []byte) {
		require.NoError(t, without.Values().Restore(k, encode()))
	})
	require.Len(t, without.pairs, 2, "the configuration has one no longer")
	for _, q := range []Question{configured, asked, percentile} {
		baseline, candidate := arms(t, s, q)
		baselineAfter, candidateAfter := arms(t, restored, q)
		require.EqualValues(t, 1, candidate.Requests)
		require.Equal(t, fmt.Sprint(baseline, candidate), fmt.Sprint(baselineAfter, candidateAfter)) // NaN differs from itself
	}
}

// By metrics, a request belongs to the window of its data point. The error rates must hold there, too: exports
// of 15 s, one hour, asked after each. Each run has its own random numbers.
func TestStore_ErrorRatesHoldForDataPoints(t *testing.T) {
	const runs, alpha = 160 / testenv.RaceSlowdown, 0.05
	for name, c := range map[string]struct {
		odds  float64
		wrong []canary.Verdict
	}{
		"as good, must not fail":            {1, []canary.Verdict{canary.Fail}},
		"at the tolerance, must not decide": {1.5, []canary.Verdict{canary.Pass, canary.Fail}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := 0
			for run := range runs {
				verdicts := hourOfPoints(t, uint64(run), c.odds)
				if slices.ContainsFunc(c.wrong, func(v canary.Verdict) bool { return verdicts[v] }) {
					wrong++
				}
			}
			require.LessOrEqual(t, float64(wrong), alpha*runs)
		})
	}
}

// hourOfPoints returns the verdicts of an hour. Of the baseline's requests, 5% are bad.
func hourOfPoints(t *testing.T, run uint64, odds float64) map[canary.Verdict]bool {
	t.Helper()
	random := rand.New(rand.NewPCG(run, 1)) //nolint:gosec // repeatable
	q := bySLO("tpot")
	s := New(dimensions, nil)
	_, _, err := s.Begin(&q, t0)
	require.NoError(t, err)
	verdicts := map[canary.Verdict]bool{}
	bad := map[string]float64{"old": 0.05, "new": 0.05 * odds / (0.95 + 0.05*odds)}
	for export := range 4 * 60 {
		now := t0.Add(time.Duration(export+1) * 15 * time.Second)
		load := 0.5 + random.Float64() // shared by both arms
		for version, requests := range map[string]float64{"old": 240, "new": 60} {
			for replica := range 5 {
				var judged [slo.Verdicts]uint64
				for range int(requests * load / 5) {
					verdict := slo.Good
					if random.Float64() < bad[version]*load {
						verdict = slo.Bad
					}
					judged[verdict]++
				}
				for verdict, n := range judged {
					s.Increase(&series.Increment{
						Dimensions: []string{"m", version}, Vantage: "engine", Arrival: now, Time: now, Replica: fmt.Sprint(version, replica),
						Part: series.PartVerdicts, SLO: "tpot", Verdict: slo.Verdict(verdict), Requests: n,
					})
				}
			}
		}
		reply, err := s.Ask(&q, now)
		require.NoError(t, err)
		verdicts[reply.Verdict] = true
	}
	return verdicts
}
