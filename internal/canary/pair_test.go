// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// epoch is when pairs begin.
var epoch = time.Unix(1795233600, 0)

// tick is the length in seconds of a window and, in simulations, the time between two questions.
const tick = 10

// traffic is what the replicas of both arms serve in each window: the same in each replica, and as
// evenly over time as whole numbers allow.
type traffic struct {
	settings Settings
	question Question
	replicas [arms]int
	// perWindow are the counts of a replica in a window; fractions add up over time.
	perWindow [arms]shares
	// latencies are an arm's, of a pair with a percentile.
	latencies [arms]func(quantile float64) float64
	// crowded puts all bad requests of an arm into one replica at a time.
	crowded bool
	minutes int
}

type shares struct{ requests, bad, unmeasured, unsuccessful, mistakes float64 }

// usual is traffic of five replicas each, of which both have 5% bad requests for an hour.
func usual() traffic {
	return traffic{
		question:  Question{Alpha: 0.05, Tolerance: 0.5},
		replicas:  [arms]int{5, 5},
		perWindow: [arms]shares{{requests: 40, bad: 2}, {requests: 10, bad: 0.5}},
		minutes:   60,
	}
}

// pair returns a pair that saw the traffic. between is called after each window.
func (f *traffic) pair(between func(p *Pair) *Pair) *Pair {
	p := NewPair(f.settings, epoch)
	for i := range f.minutes * 6 {
		now := epoch.Add(time.Duration(i) * tick * time.Second)
		for arm := range arms {
			for replica := range f.replicas[arm] {
				c := f.counts(i, arm, replica)
				var values sketch.Sketch
				if latency := f.latencies[arm]; latency != nil {
					for j := range c.Eligible {
						values.Add(latency((float64(j)+0.5)/float64(c.Eligible)), 1)
					}
				}
				p.Add(now, now, tick*time.Second, arm, fmt.Sprintf("pod-%d-%d", arm, replica), c, &values)
			}
		}
		p = between(p)
	}
	p.Advance(epoch.Add(time.Duration(f.minutes)*time.Minute + 3*time.Minute))
	return p
}

// counts returns those of a replica in a window.
func (f *traffic) counts(window int, arm Arm, replica int) Counts {
	// Fractions fill up at another time in each replica.
	whole := func(share float64) uint64 {
		at := float64(window) + float64(replica)/float64(f.replicas[arm])
		return uint64((at+1)*share) - uint64(at*share)
	}
	s := f.perWindow[arm]
	c := Counts{
		Requests: whole(s.requests), Bad: whole(s.bad), Unmeasured: whole(s.unmeasured),
		Unsuccessful: whole(s.unsuccessful), Mistakes: whole(s.mistakes),
	}
	if f.crowded {
		c.Bad = 0
		if window/6%f.replicas[arm] == replica {
			c.Bad = uint64(s.bad * float64(f.replicas[arm]))
		}
	}
	c.Eligible = c.Requests - c.Unmeasured - c.Mistakes
	return c
}

func unchanged(p *Pair) *Pair { return p }

func TestAnswer(t *testing.T) {
	loglogistic := func(scale float64) func(float64) float64 {
		return func(u float64) float64 { return scale * math.Pow(u/(1-u), 0.25) }
	}
	p80 := func(f *traffic, slower float64) {
		f.settings = Settings{Percentile: 0.8, Tolerance: 0.3}
		f.latencies = [arms]func(float64) float64{loglogistic(1), loglogistic(slower)}
	}
	for _, c := range []struct {
		name    string
		change  func(f *traffic)
		verdict Verdict
		reason  Reason
	}{
		{"as good", func(*traffic) {}, Pass, Equivalent},
		{"better", func(f *traffic) { f.perWindow[Candidate].bad = 0.2 }, Pass, Equivalent},
		{"twice as many bad requests", func(f *traffic) { f.perWindow[Candidate].bad = 1 }, Fail, Difference},
		{"worse within the tolerance", func(f *traffic) { f.perWindow[Candidate].bad, f.minutes = 0.62, 6*60 }, Pass, Equivalent},
		{"worse beyond a smaller tolerance", func(f *traffic) {
			f.perWindow[Candidate].bad, f.minutes, f.question.Tolerance = 0.62, 6*60, 0.1
		}, Fail, Difference},
		{"worse by the tolerance", func(f *traffic) { f.perWindow[Candidate].bad = 0.73 }, Undecided, Difference},
		{"worse within the tolerance, before it is shown", func(f *traffic) {
			f.perWindow[Candidate].bad = 0.68
		}, Undecided, Difference},
		{"between both", func(f *traffic) { f.perWindow[Candidate].bad, f.minutes = 0.61, 20 }, Undecided, TooFew},
		{"before three blocks", func(f *traffic) { f.perWindow[Candidate].bad, f.minutes = 5, 14 }, Undecided, TooFew},
		{"no bad request of the baseline", func(f *traffic) { f.perWindow[Baseline].bad = 0 }, Undecided, TooFew},
		{"no candidate", func(f *traffic) { f.replicas[Candidate] = 0 }, Undecided, TooFew},
		{"no baseline", func(f *traffic) { f.replicas[Baseline] = 0 }, Undecided, TooFew},
		{"two replicas of the baseline", func(f *traffic) { f.replicas[Baseline] = 2 }, Undecided, TooFewReplicas},
		{"two replicas of a good candidate", func(f *traffic) {
			f.replicas[Candidate], f.minutes = 2, 120
		}, Undecided, TooFewReplicas},
		{"two replicas of a bad candidate", func(f *traffic) {
			f.replicas[Candidate], f.perWindow[Candidate].bad = 2, 2
		}, Fail, Difference},
		{"the expected share", func(f *traffic) { f.question.ExpectedShare = 0.2 }, Pass, Equivalent},
		{"another share", func(f *traffic) {
			f.question.ExpectedShare, f.perWindow[Candidate].bad = 0.25, 2
		}, Undecided, TrafficRatio},
		{"more unmeasured", func(f *traffic) { f.perWindow[Candidate].unmeasured = 0.2 }, Fail, Coverage},
		{"fewer unmeasured", func(f *traffic) { f.perWindow[Baseline].unmeasured = 2 }, Undecided, Coverage},
		{"more unsuccessful", func(f *traffic) { f.perWindow[Candidate].unsuccessful = 0.2 }, Fail, OutcomeMix},
		{"fewer unsuccessful", func(f *traffic) { f.perWindow[Baseline].unsuccessful = 2 }, Undecided, OutcomeMix},
		{"more errors, which have no measurement", func(f *traffic) {
			f.perWindow[Candidate].unsuccessful, f.perWindow[Candidate].unmeasured = 0.2, 0.2
		}, Fail, OutcomeMix},
		{"fewer errors, which have no measurement", func(f *traffic) {
			f.perWindow[Baseline].unsuccessful, f.perWindow[Baseline].unmeasured = 2, 2
		}, Undecided, OutcomeMix},
		{"slow requests that became client mistakes", func(f *traffic) {
			f.perWindow[Baseline].unsuccessful = 2
			f.perWindow[Candidate] = shares{requests: 10, unsuccessful: 0.5, mistakes: 0.5, bad: 0.4}
		}, Undecided, TooFew},
		{"bad requests that crowd in replicas", func(f *traffic) { f.crowded = true }, Undecided, Dependence},
		{"a percentile as good", func(f *traffic) { p80(f, 1) }, Pass, Equivalent},
		{"a percentile twice as large", func(f *traffic) { p80(f, 2) }, Fail, Difference},
		{"a percentile larger within the tolerance", func(f *traffic) { p80(f, 1.12) }, Pass, Equivalent},
		{"a percentile larger by the tolerance", func(f *traffic) { p80(f, 1.3) }, Undecided, Difference},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := usual()
			c.change(&f)
			a := f.pair(unchanged).Answer(f.question)
			require.Equal(t, c.verdict, a.Verdict, "%+v", a)
			require.Equal(t, c.reason, a.Reason, "%+v", a)
			require.NotEmpty(t, a.Hint)
			if c.reason == Difference {
				require.Greater(t, a.Ratio.Lower, 1.0)
			}
			if f.settings.Percentile == 0 && c.reason == Difference {
				require.Equal(t, c.verdict == Fail, a.Ratio.Lower > 1+f.question.Tolerance, "the interval lies beyond the tolerance")
			}
			if c.reason == Equivalent && f.settings.Percentile == 0 {
				require.Less(t, a.Ratio.Upper, 1+f.question.Tolerance)
			}
		})
	}
}

func TestAnswer_Numbers(t *testing.T) {
	f := usual()
	f.perWindow[Candidate].bad = 1
	a := f.pair(unchanged).Answer(f.question)
	require.Equal(t, "{72000 3600 {0.05 NaN NaN} 5}", fmt.Sprint(a.Baseline))
	require.Equal(t, "{18000 1800 {0.1 NaN NaN} 5}", fmt.Sprint(a.Candidate))
	require.Equal(t, unknownText, fmt.Sprint(a.PercentileRatio))
	require.Equal(t, 360, a.Windows)
	require.InEpsilon(t, (1./9)/(1./19), a.Ratio.Estimate, 0.011)
	require.Less(t, a.Ratio.Lower, a.Ratio.Estimate)
	require.Greater(t, a.Ratio.Upper, a.Ratio.Estimate)

	a = NewPair(Settings{}, epoch).Answer(f.question)
	require.Equal(t, unknownText, fmt.Sprint(a.Ratio))
	require.True(t, math.IsNaN(a.Baseline.Estimate))
}

// unknownText is the text of an Interval about which nothing is known, as NaN differs from itself.
const unknownText = "{NaN NaN NaN}"

func TestAnswer_Percentiles(t *testing.T) {
	f := usual()
	f.settings = Settings{Percentile: 0.9, Tolerance: 0.1}
	for arm := range arms {
		f.latencies[arm] = func(u float64) float64 { return float64(arm+1) * (1 + u) }
	}
	a := f.pair(unchanged).Answer(f.question)
	// Nearest rank: the 9th of a candidate's ten values 1.05 to 1.95, times 2.
	require.InEpsilon(t, 2*1.85, a.Candidate.Estimate, 0.0055)
	require.InEpsilon(t, 1.8875, a.Baseline.Estimate, 0.0055, "the 36th of forty values")
	require.Equal(t, a.Candidate.Requests-50, a.Candidate.Bad, "all but those of the first window, which has no threshold yet")
	require.InEpsilon(t, 2*1.85/1.8875, a.PercentileRatio.Estimate, 0.011)
	// A tenth of the candidate's values is in each bucket, and the 90th percentile is where one of them ends.
	require.InEpsilon(t, 2*1.85, a.Candidate.Lower, 0.0055)
	require.InEpsilon(t, 2*1.95, a.Candidate.Upper, 0.0055)
	require.InEpsilon(t, a.Candidate.Lower/a.Baseline.Upper, a.PercentileRatio.Lower, 1e-12)
	require.InEpsilon(t, a.Candidate.Upper/a.Baseline.Lower, a.PercentileRatio.Upper, 1e-12)
}

// Any alpha gives an answer.
func TestAnswer_UnusualAlpha(t *testing.T) {
	f := usual()
	p := f.pair(unchanged)
	for _, alpha := range []float64{0, -1, 1, 1e-300, 2, math.Inf(1), math.NaN()} {
		p.Answer(Question{Alpha: alpha, Tolerance: math.NaN(), ExpectedShare: math.NaN()})
	}
	require.Equal(t, Undecided, p.Answer(Question{Tolerance: 0.5}).Verdict)
}

// A restart after any window changes nothing.
func TestDecode_AgreesWithAnUnbrokenRun(t *testing.T) {
	for _, percentile := range []float64{0, 0.9} {
		f := usual()
		f.minutes = 20
		f.settings.Percentile = percentile
		f.perWindow[Baseline].unmeasured = 0.3
		if percentile > 0 {
			for arm := range arms {
				f.latencies[arm] = func(u float64) float64 { return 2 * u * u }
			}
		}
		restarted := f.pair(func(p *Pair) *Pair {
			decoded, err := Decode(p.AppendBinary(nil))
			require.NoError(t, err)
			return decoded
		})
		p := f.pair(unchanged)
		require.Equal(t, p.AppendBinary(nil), restarted.AppendBinary(nil))
		require.Equal(t, p.Answer(f.question).Verdict, restarted.Answer(f.question).Verdict)
		require.Equal(t, p.Answer(f.question).Ratio.Estimate, restarted.Answer(f.question).Ratio.Estimate)
		require.Equal(t, f.settings, restarted.settings)
	}
}

func TestDecode_DamagedInput(t *testing.T) {
	f := usual()
	f.minutes = 3
	valid := f.pair(unchanged).AppendBinary(nil)
	for i := range valid {
		_, err := Decode(valid[:i])
		require.Error(t, err)
	}
	p := NewPair(Settings{}, epoch)
	for replica := range uint64(maxReplicas + 1) {
		p.blocks[0].arms[Baseline] = append(p.blocks[0].arms[Baseline], entry[observation]{replica: replica + 1})
	}
	_, err := Decode(p.AppendBinary(nil))
	require.Error(t, err, "more replicas than a list may have")
	_, err = Decode(append(valid, 0))
	require.ErrorIs(t, err, errMalformed)
	for _, other := range []byte{version - 1, version + 1} {
		valid[0] = other
		_, err = Decode(valid)
		require.ErrorContains(t, err, "version")
	}
}

func FuzzDecode(f *testing.F) {
	example := usual()
	example.minutes = 3
	f.Add(example.pair(unchanged).AppendBinary(nil))
	example.settings.Percentile = 0.5
	example.latencies = [arms]func(float64) float64{func(u float64) float64 { return u }, func(u float64) float64 { return u }}
	f.Add(NewPair(example.settings, epoch).AppendBinary(nil))
	f.Add(example.pair(unchanged).AppendBinary(nil))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		p, err := Decode(encoded)
		if err != nil {
			return
		}
		again, err := Decode(p.AppendBinary(nil))
		require.NoError(t, err)
		require.Equal(t, p.AppendBinary(nil), again.AppendBinary(nil))
		// It goes on, whatever it holds.
		now := time.Unix(p.clock, 0)
		for i := range 30 {
			now = now.Add(tick * time.Second)
			p.Add(now, now, tick*time.Second, Arm(i%2), "a", Counts{Requests: 5, Eligible: 5, Bad: uint64(i % 3)}, nil)
			p.Answer(Question{Alpha: 0.05, Tolerance: 0.5, ExpectedShare: 0.5})
		}
		p.Advance(now.Add(time.Hour))
		require.Empty(t, p.open)
	})
}
