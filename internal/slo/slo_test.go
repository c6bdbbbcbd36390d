package slo

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const month = 720 * time.Hour

func TestBurnRateAndBudget(t *testing.T) {
	tests := map[string]struct {
		counts       Counts
		objective    float64
		rate, budget float64
	}{
		"none was bad":                    {Counts{Good: 7}, 0.95, 0, 1},
		"one in twenty: exactly allowed":  {Counts{Good: 19, Bad: 1}, 0.95, 1, 0},
		"one in forty: half the budget":   {Counts{Good: 39, Bad: 1}, 0.95, 0.5, 0.5},
		"two in twenty: twice what may":   {Counts{Good: 18, Bad: 2}, 0.95, 2, -1},
		"all were bad":                    {Counts{Bad: 3}, 0.95, 20, -19},
		"all were bad, one in two may be": {Counts{Bad: 3}, 0.5, 2, -1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rate, known := test.counts.BurnRate(test.objective)
			require.True(t, known)
			require.InDelta(t, test.rate, rate, 1e-9)
			budget, known := test.counts.BudgetRemaining(test.objective)
			require.True(t, known)
			require.InDelta(t, test.budget, budget, 1e-9)
		})
	}
	_, known := Counts{}.BurnRate(0.95)
	require.False(t, known)
	_, known = Counts{}.BudgetRemaining(0.95)
	require.False(t, known)
}

// A request is in a window until its slot is sixty slots old: the window of five
// minutes moves in steps of five seconds, that of 30 days in steps of 12 hours.
func TestRequestsLeaveTheirWindows(t *testing.T) {
	h := NewHistory(month)
	h.Add(9*time.Second, true) // slot 1 of the five minutes, slot 0 of all others
	h.Add(10*time.Second, false)
	one, both := Counts{Good: 1}, Counts{Good: 1, Bad: 1}
	bad := Counts{Bad: 1}
	for _, test := range []struct {
		at   time.Duration
		want Recent
	}{
		{10 * time.Second, Recent{[5]Counts{both, both, both, both, both}, both}},
		{305*time.Second - 1, Recent{[5]Counts{both, both, both, both, both}, both}},
		{305 * time.Second, Recent{[5]Counts{bad, both, both, both, both}, both}},
		{310*time.Second - 1, Recent{[5]Counts{bad, both, both, both, both}, both}},
		{310 * time.Second, Recent{[5]Counts{{}, both, both, both, both}, both}},
		{30*time.Minute - 1, Recent{[5]Counts{{}, both, both, both, both}, both}},
		{30 * time.Minute, Recent{[5]Counts{{}, {}, both, both, both}, both}},
		{time.Hour, Recent{[5]Counts{{}, {}, {}, both, both}, both}},
		{6 * time.Hour, Recent{[5]Counts{{}, {}, {}, {}, both}, both}},
		{72*time.Hour - 1, Recent{[5]Counts{{}, {}, {}, {}, both}, both}},
		{72 * time.Hour, Recent{Budget: both}},
		{month - 1, Recent{Budget: both}},
		{month, Recent{}},
	} {
		require.Equal(t, test.want, h.Recent(test.at), test.at)
	}
	h.Add(2*month, true)
	require.Equal(t, Recent{[5]Counts{one, one, one, one, one}, one}, h.Recent(2*month))
}

func TestTimeThatGoesBackwardsLosesNothing(t *testing.T) {
	h := NewHistory(time.Hour)
	h.Add(10*time.Hour, true)
	h.Add(5*time.Hour, false)
	h.Add(-5*time.Hour, false)
	all := Counts{Good: 1, Bad: 2}
	require.Equal(t, Recent{[5]Counts{all, all, all, all, all}, all}, h.Recent(-time.Hour))
	require.Equal(t, all, h.Recent(10*time.Hour + 4*time.Minute).Burn[0])
}

// Random requests at random moments, against a plain list of them: every window
// holds at least those of 59/60 of its length, at most those of its length, and
// exactly those of its slots.
func TestWindowsAgreeWithAList(t *testing.T) {
	type request struct {
		at   time.Duration
		good bool
	}
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			length := time.Hour + time.Duration(random.Int64N(int64(month)))
			// Most steps are short; some skip a window or two.
			longest := []time.Duration{time.Second, time.Minute, time.Hour, 100 * time.Hour}
			h := NewHistory(length)
			var all []request
			now := time.Duration(0)
			for range 2000 {
				now += time.Duration(random.Int64N(int64(longest[random.IntN(len(longest)-random.IntN(2))])))
				all = append(all, request{now, random.IntN(3) > 0})
				h.Add(now, all[len(all)-1].good)
				if random.IntN(10) > 0 {
					continue
				}
				count := func(from time.Duration) (c Counts) {
					for _, r := range all {
						if r.at >= from && r.good {
							c.Good++
						}
						if r.at >= from && !r.good {
							c.Bad++
						}
					}
					return c
				}
				recent := h.Recent(now)
				for i, window := range append(BurnWindows[:], length) {
					got := recent.Budget
					if i < len(BurnWindows) {
						got = recent.Burn[i]
					}
					step := window / 60
					require.Equal(t, count(now-now%step-59*step), got, "%v at %v", window, now)
					most, least := count(now-window), count(now-59*step)
					require.True(t, got.Good <= most.Good && got.Bad <= most.Bad && got.Good >= least.Good && got.Bad >= least.Bad)
				}
			}
		})
	}
}

// The README says so.
func TestMemoryOfAHistory(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(History{}), uintptr(5900))
}
