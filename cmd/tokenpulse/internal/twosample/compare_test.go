// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

var epoch = time.Unix(1_800_000_000, 0)

// request returns one of a prompt of 500 tokens, with a seed.
func request(r *rand.Rand, i int) *Request {
	gaps := &sketch.Sketch{}
	for range 3 {
		gaps.Add(0.02*math.Exp(0.1*r.NormFloat64()), 1)
	}
	ttft := 0.3 * math.Exp(0.2*r.NormFloat64())
	return &Request{
		Replica: strconv.Itoa(i % 4), Start: epoch.Add(time.Duration(i) * 100 * time.Millisecond), PromptTokens: 500, TokenGaps: gaps,
		Values:   [Indicators]float64{ttft, 0.02 * math.Exp(0.1*r.NormFloat64()), math.NaN(), ttft + 2*math.Exp(0.1*r.NormFloat64())},
		Verdicts: func(yield func(string, bool) bool) { yield("all", ttft > 0.4) },
	}
}

// armOf returns an arm of n requests, which may be changed.
func armOf(seed uint64, n int, change func(i int, r *Request)) *Arm {
	a, random := &Arm{}, rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		r := request(random, i)
		if change != nil {
			change(i, r)
		}
		a.Add(r)
	}
	return a
}

var latencies = Question{
	Indicators: []Indicator{TimeToFirstToken, TimePerOutputToken}, Tolerance: DefaultTolerance, OddsTolerance: DefaultOddsTolerance, Alpha: DefaultAlpha,
}

func compare(t *testing.T, base, cand *Arm, q Question) Result {
	t.Helper()
	r, err := Compare(base, cand, q)
	require.NoError(t, err)
	return r
}

func slowed(by float64) func(int, *Request) {
	return func(_ int, r *Request) {
		for i := range r.Values {
			r.Values[i] *= by
		}
	}
}

func TestCompare_Verdicts(t *testing.T) {
	for _, c := range []struct {
		name    string
		slower  float64
		verdict Verdict
		exit    int
	}{
		{"as good", 1, Equivalent, 0},
		{"4% slower", 1.04, Equivalent, 0},
		{"10% slower", 1.1, Undecided, 2},
		{"16% slower", 1.16, Worse, 1},
		{"16% faster", 1 / 1.16, Better, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compare(t, armOf(1, 4000, nil), armOf(2, 4000, slowed(c.slower)), latencies)
			require.Equal(t, c.verdict, r.Verdict, r.Hint)
			require.Equal(t, c.exit, r.Verdict.ExitCode())
		})
	}
}

func TestCompare_RatioOfEachRow(t *testing.T) {
	r := compare(t, armOf(1, 4000, nil), armOf(2, 4000, slowed(1.5)), latencies)
	names := map[string]float64{}
	for _, row := range r.Rows {
		names[row.name()] = row.Ratio.Estimate
		if row.Indicator == "" {
			continue
		}
		require.LessOrEqual(t, row.Ratio.Lower, row.Ratio.Estimate)
		require.GreaterOrEqual(t, row.Ratio.Upper, row.Ratio.Estimate)
		require.Equal(t, row.Indicator == "time_to_first_token" || row.Indicator == "time_per_output_token", row.Decides)
	}
	for _, indicator := range []string{"time_to_first_token", "time_per_output_token", "request_duration"} {
		require.InDelta(t, 1.5, names["p50 of "+indicator], 0.04)
		require.InDelta(t, 1.5, names["p95 of "+indicator], 0.06)
	}
	require.InDelta(t, 1, names["p50 of inter_token_latency"], 0.02, "gaps are the same")
	require.Len(t, r.Rows, 9)
}

// 7.5% of a log-normal with a deviation of 0.2 is above 0.4 / 0.3. The odds of the candidate are three times as large.
func TestCompare_SLO(t *testing.T) {
	q := latencies
	q.SLOs, q.Indicators = []string{"all"}, nil
	r := compare(t, armOf(1, 4000, nil), armOf(2, 4000, nil), q)
	require.Equal(t, Equivalent, r.Verdict, r.Hint)
	require.InDelta(t, 0.075, r.Rows[0].Baseline.Value, 0.01)
	tripled := rand.New(rand.NewPCG(3, 0))
	r = compare(t, armOf(1, 4000, nil), armOf(2, 4000, func(_ int, r *Request) {
		bad := r.Values[TimeToFirstToken] > 0.4 || tripled.Float64() < 0.131
		r.Verdicts = func(yield func(string, bool) bool) { yield("all", bad) }
	}), q)
	require.Equal(t, Worse, r.Verdict, r.Hint)
	require.InDelta(t, 3, r.Rows[0].Ratio.Estimate, 0.4)
}

func TestCompare_SLOWithoutBadRequestsIsUndecided(t *testing.T) {
	q := latencies
	q.SLOs, q.Indicators = []string{"all"}, nil
	good := func(_ int, r *Request) { r.Verdicts = func(yield func(string, bool) bool) { yield("all", false) } }
	r := compare(t, armOf(1, 4000, good), armOf(2, 4000, good), q)
	require.Equal(t, Undecided, r.Verdict)
	require.Equal(t, TooFew, r.Reason)
}

// oneIn chooses requests of all replicas at random.
func oneIn(n uint64, i int) bool { return mixed(uint64(i))%n == 0 }

// failing lets one of n requests fail.
func failing(n uint64) func(int, *Request) {
	return func(i int, r *Request) { r.Unsuccessful = oneIn(n, i) }
}

func TestCompare_NamesTheArmThatIsTooSmall(t *testing.T) {
	few, enough := armOf(1, 199, nil), armOf(2, 200, nil)
	require.Equal(t, "the baseline has 199 requests; record 200 or more", compare(t, few, enough, latencies).Hint)
	require.Equal(t, "the candidate has 199 requests; record 200 or more", compare(t, enough, few, latencies).Hint)
}

func TestCompare_Refuses(t *testing.T) {
	for _, c := range []struct {
		name       string
		base, cand *Arm
		reason     Reason
	}{
		{"under 200 requests", armOf(1, 4000, nil), armOf(2, 199, nil), TooFew},
		{"the same requests", armOf(1, 4000, nil), armOf(1, 4000, nil), SameRequests},
		{"a part of the same requests", armOf(1, 4000, nil), armOf(1, 400, nil), SameRequests},
		{"prompts of other lengths", armOf(1, 4000, nil), armOf(2, 4000, func(i int, r *Request) {
			if i%3 == 0 {
				r.PromptTokens = 5000
			}
		}), PromptMix},
		{"more errors", armOf(1, 8000, failing(25)), armOf(2, 8000, failing(18)), Outcomes},
		{"fewer errors", armOf(1, 4000, failing(10)), armOf(2, 4000, nil), Outcomes},
		{"twice the load", armOf(1, 4000, nil), armOf(2, 4000, func(i int, r *Request) {
			r.Start = epoch.Add(time.Duration(i) * 50 * time.Millisecond)
		}), Load},
		{"all at once", armOf(1, 4000, nil), armOf(2, 4000, func(i int, r *Request) {
			r.Start = epoch.Add(time.Duration(i%7) * time.Second)
			r.Values[RequestDuration] /= 600
		}), Dependence},
		{"no first token measured of a third", armOf(1, 4000, nil), armOf(2, 4000, func(i int, r *Request) {
			if oneIn(3, i) {
				r.Values[TimeToFirstToken] = math.Inf(1)
			}
		}), Coverage},
		{"half a percentile of zeros", armOf(1, 4000, nil), armOf(2, 4000, func(i int, r *Request) {
			if i%3 > 0 {
				r.Values[TimeToFirstToken] = 0
			}
		}), Coverage},
		{"few with a time per output token", armOf(1, 4000, nil), armOf(2, 4000, func(i int, r *Request) {
			if i%40 > 0 {
				r.Values[TimePerOutputToken] = math.NaN()
			}
		}), TooFew},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compare(t, c.base, c.cand, latencies)
			require.Equal(t, Undecided, r.Verdict, r.Hint)
			require.Equal(t, c.reason, r.Reason, r.Hint)
			require.NotEmpty(t, r.Hint)
			require.Equal(t, 2, r.Verdict.ExitCode())
		})
	}
}

// The odds of an error are compared without an SLO.
func TestCompare_ManyMoreErrorsAreWorse(t *testing.T) {
	r := compare(t, armOf(1, 4000, failing(100)), armOf(2, 4000, failing(10)), latencies)
	require.Equal(t, Worse, r.Verdict)
	require.Contains(t, r.Hint, "unsuccessful requests")
}

// The slowest 3% of the candidate fail, which would make the others look faster.
func TestCompare_FailedSlowRequestsDoNotPass(t *testing.T) {
	steady := failing(40)
	r := compare(t, armOf(1, 20000, steady), armOf(2, 20000, func(i int, r *Request) {
		slowed(1.1)(i, r)
		r.Unsuccessful = r.Values[TimeToFirstToken] > 0.48
	}), latencies)
	require.NotEqual(t, Equivalent, r.Verdict, r.Hint)
	r = compare(t, armOf(1, 20000, steady), armOf(2, 20000, func(i int, r *Request) {
		slowed(1.02)(i, r)
		steady(i, r)
	}), latencies)
	require.Equal(t, Equivalent, r.Verdict, r.Hint)
}

// Of both arms, a third has no measured time to first token, or half fails.
func TestCompare_AsManyWithoutAValueAreNoDifference(t *testing.T) {
	for name, change := range map[string]func(int, *Request){
		"unmeasured": func(i int, r *Request) {
			if oneIn(3, i) {
				r.Values[TimeToFirstToken] = math.Inf(1)
			}
		},
		"failed": failing(2),
	} {
		t.Run(name, func(t *testing.T) {
			r := compare(t, armOf(1, 8000, change), armOf(2, 8000, change), latencies)
			require.Equal(t, Equivalent, r.Verdict, r.Hint)
		})
	}
}

// Requests that fail at once would make an arm look faster.
func TestCompare_LatenciesOfFailedRequestsDoNotCount(t *testing.T) {
	fast := func(i int, r *Request) {
		if r.Unsuccessful = oneIn(4, i); r.Unsuccessful {
			slowed(0.001)(i, r)
		}
	}
	with, without := compare(t, armOf(1, 8000, fast), armOf(2, 8000, nil), latencies), compare(t, armOf(1, 8000, nil), armOf(2, 8000, nil), latencies)
	for i := range with.Rows[:len(with.Rows)-1] {
		require.InEpsilon(t, without.Rows[i].Baseline.Value, with.Rows[i].Baseline.Value, 0.02, with.Rows[i].name())
	}
}

// A row that alone makes the verdict worse is one of many that could be wrong. A row that has to be equivalent is not.
func TestSubject_MoreRowsNeedFartherLowerBounds(t *testing.T) {
	s := subject{tolerance: 0.1, views: []number{{sides: [2]side{*normal(0, 1, 100), *normal(1, 1, 100)}, ratio: math.E}}}
	one, ten := s.row(0.05, 1), s.row(0.05, 10)
	deviation := math.Sqrt(2.0 / 100)
	require.InDelta(t, 1-1.972*deviation, math.Log(one.Ratio.Lower), 1e-3, "t of 198 degrees of freedom")
	require.InDelta(t, 1-2.839*deviation, math.Log(ten.Ratio.Lower), 1e-3, "the same at 0.25%")
	require.InDelta(t, 1+1.972*deviation, math.Log(ten.Ratio.Upper), 1e-3)
}

// longer makes a share of the prompts four times as long, and these requests three times as slow.
func longer(share float64) func(int, *Request) {
	r := rand.New(rand.NewPCG(9, 9))
	return func(_ int, q *Request) {
		if r.Float64() < share {
			q.PromptTokens = 2000
			q.Values[TimeToFirstToken] *= 3
		}
	}
}

func TestCompare_ChangedMixIsComparedWithinBands(t *testing.T) {
	base := armOf(1, 8000, longer(0.3))
	r := compare(t, base, armOf(2, 8000, longer(0.6)), latencies)
	require.True(t, r.Mix.Changed)
	require.Equal(t, Equivalent, r.Verdict, r.Hint)
	require.Contains(t, r.Warnings[len(r.Warnings)-1], "lengths of prompts differ")
	require.Equal(t, []string{"257-512", "1025-2048"}, []string{r.Mix.Bands[0].Prompts, r.Mix.Bands[1].Prompts})
	// In the baseline's own mix, its percentiles are the ordinary ones.
	same := compare(t, base, armOf(2, 8000, longer(0.3)), latencies)
	require.False(t, same.Mix.Changed)
	for i := range r.Rows[:2] {
		require.InEpsilon(t, same.Rows[i].Baseline.Value, r.Rows[i].Baseline.Value, 1e-6)
		require.InEpsilon(t, same.Rows[i].Candidate.Value, r.Rows[i].Candidate.Value, 0.03)
	}
	slower := compare(t, base, armOf(2, 8000, func(i int, r *Request) {
		slowed(1.2)(i, r)
		if i%2 == 0 {
			r.PromptTokens = 2000
			r.Values[TimeToFirstToken] *= 3
		}
	}), latencies)
	require.Equal(t, Worse, slower.Verdict)
}

// Services report no usage of requests that fail. 2% and 10% of them fail, in a mix that is the same, changed, or unknown.
func TestCompare_MoreErrorsWithoutLengthAreWorse(t *testing.T) {
	errorsOf := func(n uint64, change func(int, *Request)) func(int, *Request) {
		return func(i int, r *Request) {
			change(i, r)
			if failing(n)(i, r); r.Unsuccessful {
				r.PromptTokens = 0
			}
		}
	}
	same := func(int, *Request) {}
	unknown := func(_ int, r *Request) { r.PromptTokens = 0 }
	for _, c := range []struct {
		name       string
		base, cand func(int, *Request)
		changed    bool
	}{
		{"same mix", same, same, false},
		{"changed mix", longer(0.2), longer(0.3), true},
		{"no length known", unknown, unknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compare(t, armOf(1, 4000, errorsOf(50, c.base)), armOf(2, 4000, errorsOf(10, c.cand)), latencies)
			require.Equal(t, c.changed, r.Mix.Changed)
			require.Equal(t, c.changed, slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "report no length of their prompt") }))
			require.Equal(t, Worse, r.Verdict, r.Hint)
			outcomes := r.Rows[len(r.Rows)-1]
			require.InDelta(t, 0.02, outcomes.Baseline.Value, 0.01)
			require.InDelta(t, 0.1, outcomes.Candidate.Value, 0.02)
		})
	}
	r := compare(t, armOf(1, 4000, same), armOf(2, 4000, errorsOf(1, same)), latencies)
	require.Equal(t, Worse, r.Verdict, "all fail")
}

func TestCompare_NamesBandsThatAreLeftOut(t *testing.T) {
	r := compare(t, armOf(1, 4000, nil), armOf(2, 4000, func(i int, r *Request) {
		if i%10 == 0 {
			r.PromptTokens = 100_000
		}
	}), latencies)
	require.Equal(t, Equivalent, r.Verdict, r.Hint)
	require.Contains(t, r.Warnings[len(r.Warnings)-1], "65537-131072")
}

// Runs of both arms differ by 20%, as the runs of one version do.
func TestCompare_RunsThatDiffer(t *testing.T) {
	runs := func(n int, seed uint64) func(int, *Request) {
		r := rand.New(rand.NewPCG(seed, 7))
		shift := make([]float64, n)
		for i := range shift {
			shift[i] = math.Exp(0.2 * r.NormFloat64())
		}
		return func(i int, q *Request) {
			q.Replica = "" // of which all runs would have the same share
			q.Run, q.Start = strconv.Itoa(i%n), epoch.Add(time.Duration(i%n)*time.Hour+time.Duration(i/n)*100*time.Millisecond)
			slowed(shift[i%n])(i, q)
		}
	}
	for name, arms := range map[string][2]*Arm{
		"six each":     {armOf(1, 6000, runs(6, 1)), armOf(2, 6000, runs(6, 2))},
		"many and one": {armOf(1, 24000, runs(24, 1)), armOf(2, 1000, runs(1, 2))},
		"one and many": {armOf(1, 1000, runs(1, 5)), armOf(2, 24000, runs(24, 2))},
	} {
		t.Run(name, func(t *testing.T) {
			r := compare(t, arms[0], arms[1], latencies)
			require.Equal(t, Undecided, r.Verdict, r.Hint)
			require.Greater(t, r.Rows[0].Ratio.Upper/r.Rows[0].Ratio.Lower, 1.9, "2.8 of one run's deviation below, 2 above")
		})
	}
	r := compare(t, armOf(1, 1000, runs(1, 1)), armOf(2, 1000, runs(1, 2)), latencies)
	require.Contains(t, r.Warnings[0], "each arm is one run")
}

func TestCompare_WithoutStartsInTheOrderOfTheFile(t *testing.T) {
	unknown := func(_ int, r *Request) { r.Start = time.Time{} }
	r := compare(t, armOf(1, 4000, unknown), armOf(2, 4000, unknown), latencies)
	require.Equal(t, Equivalent, r.Verdict, r.Hint)
	require.Zero(t, r.Baseline.RequestRate)
	known := compare(t, armOf(1, 4000, nil), armOf(2, 4000, nil), latencies)
	require.InDelta(t, 10, known.Baseline.RequestRate, 0.1)
	require.InDelta(t, 23, known.Baseline.InFlight, 1)
}

func TestCompare_MistakesInTheQuestion(t *testing.T) {
	for message, change := range map[string]func(*Question){
		"tolerance is 0.01; use a value from 0.02 to 10":    func(q *Question) { q.Tolerance = 0.01 },
		"odds tolerance is 11; use a value from 0.02 to 10": func(q *Question) { q.OddsTolerance = 11 },
		"alpha is NaN; use a value from 1e-06 to 0.5":       func(q *Question) { q.Alpha = math.NaN() },
		"nothing is asked; name an indicator or an slo":     func(q *Question) { q.Indicators = nil },
		`the baseline has no verdicts of the slo "fast", but of: all; give the definition of the slo, or see whether its match selects requests`: func(q *Question) { q.SLOs = []string{"fast"} },
	} {
		q := latencies
		change(&q)
		_, err := Compare(armOf(1, 300, nil), armOf(2, 300, nil), q)
		require.EqualError(t, err, message)
	}
}

// Some failures of a few replicas leave the odds open upwards.
func TestCompare_BoundsWithoutMeaningAreOpen(t *testing.T) {
	q := Question{Indicators: []Indicator{TimeToFirstToken}, Tolerance: 0.1, OddsTolerance: 0.1, Alpha: DefaultAlpha}
	open := 0
	for seed := range uint64(20) {
		r := compare(t, armOf(2*seed+1, 1000, failing(50)), armOf(2*seed+2, 200, func(i int, r *Request) { r.Unsuccessful = i == 40 || i == 90 }), q)
		for _, row := range r.Rows {
			require.True(t, row.Ratio.Upper <= 1e6 || math.IsInf(row.Ratio.Upper, 1), "%v", row.Ratio.Upper)
			if math.IsInf(row.Ratio.Upper, 1) {
				open++
			}
		}
	}
	require.Positive(t, open)
}

func TestResult_JSONHasNullForWhatIsOpen(t *testing.T) {
	r := compare(t, armOf(1, 400, nil), armOf(2, 400, nil), latencies)
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"ratio":{"estimate":null,"lower":null,"upper":null}`, "no request is unsuccessful")
}
