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

// A history that was saved and read back goes on as if nothing had been.
func TestSavedHistoryGoesOn(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			length := time.Hour + time.Duration(random.Int64N(int64(month)))
			longest := []time.Duration{time.Second, time.Minute, time.Hour, 100 * time.Hour}
			whole, saved := NewHistory(length), NewHistory(length)
			now := 56 * 365 * 24 * time.Hour // 2026, since 1970
			for range 500 {
				now += time.Duration(random.Int64N(int64(longest[random.IntN(len(longest)-random.IntN(2))])))
				good := random.IntN(3) > 0
				whole.Add(now, good)
				saved.Add(now, good)
				if random.IntN(10) == 0 {
					now += time.Duration(random.Int64N(int64(time.Hour))) // down
					encoded := saved.AppendBinary(nil)
					require.Less(t, len(encoded), 3000)
					var err error
					saved, err = DecodeHistory(encoded, length, now)
					require.NoError(t, err)
				}
				require.Equal(t, whole.Recent(now), saved.Recent(now))
			}
		})
	}
}

func TestSavedHistoryOfAnotherBudget(t *testing.T) {
	h := NewHistory(month)
	h.Add(time.Hour, false)
	read, err := DecodeHistory(h.AppendBinary(nil), 2*month, time.Hour)
	require.NoError(t, err)
	bad := Counts{Bad: 1}
	require.Equal(t, Recent{Burn: [5]Counts{bad, bad, bad, bad, bad}}, read.Recent(time.Hour))
}

// The clock was ahead when the history was saved, or has been set back: what there is
// stays, and leaves its windows as if it had come by the right clock.
func TestSavedHistoryOfTheFuture(t *testing.T) {
	for _, ahead := range []time.Duration{time.Second, time.Minute, 100 * time.Hour, 20_000 * time.Hour} {
		h := NewHistory(month)
		h.Add(72*time.Hour+ahead-4*time.Minute, true)
		h.Add(72*time.Hour+ahead, false)
		read, err := DecodeHistory(h.AppendBinary(nil), month, 72*time.Hour)
		require.NoError(t, err)
		both, bad := Counts{Good: 1, Bad: 1}, Counts{Bad: 1}
		require.Equal(t, Recent{[5]Counts{both, both, both, both, both}, both}, read.Recent(72*time.Hour), ahead)
		require.Equal(t, bad, read.Recent(72*time.Hour + 2*time.Minute).Burn[0], ahead)
		require.Equal(t, Counts{}, read.Recent(72*time.Hour + 6*time.Minute).Burn[0], ahead)
	}
}

func TestMalformedHistory(t *testing.T) {
	h := NewHistory(month)
	h.Add(time.Hour, false)
	encoded := h.AppendBinary(nil)
	for length := range encoded {
		_, err := DecodeHistory(encoded[:length], month, time.Hour)
		require.ErrorIs(t, err, errMalformed, length)
	}
	_, err := DecodeHistory(append(encoded, 0), month, time.Hour)
	require.ErrorIs(t, err, errMalformed)
}

func FuzzDecodeHistory(f *testing.F) {
	h := NewHistory(month)
	h.Add(time.Hour, true)
	f.Add(h.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		read, err := DecodeHistory(encoded, month, 1000*time.Hour)
		if err != nil {
			return
		}
		read.Add(1000*time.Hour, false)
		again, err := DecodeHistory(read.AppendBinary(nil), month, 1000*time.Hour)
		require.NoError(t, err)
		require.Equal(t, read.Recent(1000*time.Hour), again.Recent(1000*time.Hour))
	})
}

func TestAlerts(t *testing.T) {
	const objective = 0.99 // a budget of 1%
	percent := func(bad uint64) Counts { return Counts{Good: 1000 - 10*bad, Bad: 10 * bad} }
	at14, at15, at6, at7, at1, at2 := percent(14), percent(15), percent(6), percent(7), percent(1), percent(2)
	all, most := percent(100), percent(91)
	tests := map[string]struct {
		burn      [len(BurnWindows)]Counts // 5m, 30m, 1h, 6h, 3d
		objective float64
		want      [len(Alerts)]bool
	}{
		"no requests":                    {[5]Counts{}, objective, [3]bool{}},
		"all within the budget":          {[5]Counts{at1, at1, at1, at1, at1}, objective, [3]bool{}},
		"14 times too fast":              {[5]Counts{at14, at1, at14, at1, at1}, objective, [3]bool{}},
		"15 times too fast":              {[5]Counts{at15, at1, at15, at1, at1}, objective, [3]bool{true}},
		"an hour ago":                    {[5]Counts{{}, at1, at15, at1, at1}, objective, [3]bool{}},
		"not for long":                   {[5]Counts{at15, at15, at14, at1, at1}, objective, [3]bool{}},
		"6 times too fast":               {[5]Counts{at1, at6, at1, at6, at1}, objective, [3]bool{}},
		"7 times too fast":               {[5]Counts{at1, at7, at1, at7, at1}, objective, [3]bool{false, true}},
		"7 times too fast, hours ago":    {[5]Counts{at1, at6, at1, at7, at1}, objective, [3]bool{}},
		"twice too fast for days":        {[5]Counts{at1, at1, at1, at2, at2}, objective, [3]bool{false, false, true}},
		"twice too fast, a day ago":      {[5]Counts{at1, at1, at1, at1, at2}, objective, [3]bool{}},
		"all at once":                    {[5]Counts{all, all, all, all, all}, objective, [3]bool{true, true, true}},
		"nearly all where 10 is most":    {[5]Counts{most, most, most, most, most}, 0.9, [3]bool{true, true, true}},
		"half of them, where 10 is most": {[5]Counts{percent(50), percent(50), percent(50), percent(50), percent(50)}, 0.9, [3]bool{false, false, true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range Alerts {
				require.Equal(t, test.want[i], Alerts[i].Fires(&Recent{Burn: test.burn}, test.objective), Alerts[i].Name)
			}
		})
	}
	require.Equal(t, [2]time.Duration{time.Hour, 5 * time.Minute}, [2]time.Duration{Alerts[0].LongWindow(), Alerts[0].ShortWindow()})
	require.Equal(t, [2]time.Duration{6 * time.Hour, 30 * time.Minute}, [2]time.Duration{Alerts[1].LongWindow(), Alerts[1].ShortWindow()})
	require.Equal(t, [2]time.Duration{72 * time.Hour, 6 * time.Hour}, [2]time.Duration{Alerts[2].LongWindow(), Alerts[2].ShortWindow()})
}
