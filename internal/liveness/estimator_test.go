// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

// simple estimates seconds per byte from the last 500 waits of prompts above 16 kB.
type simple struct {
	rates []float64
	of    func(rates []float64) float64
}

func (e *simple) silent(time.Duration, sample) {}

func (e *simple) served(_ time.Duration, s sample) {
	if s.size > 16_000 {
		e.rates = append(e.rates, s.wait.Seconds()/float64(s.size))
		e.rates = e.rates[max(0, len(e.rates)-500):]
	}
}

func (e *simple) expect(_ time.Duration, size int64) (time.Duration, bool) {
	if len(e.rates) < 20 {
		return 0, false
	}
	return seconds(e.of(e.rates) * float64(size)), true
}

func (e *simple) seen() uint64 { return uint64(len(e.rates)) }

func lastOf(rates []float64) float64 { return rates[len(rates)-1] }

func meanOf(rates []float64) (sum float64) {
	for _, r := range rates {
		sum += r
	}
	return sum / float64(len(rates))
}

func highOf(rates []float64) float64 {
	sorted := slices.Sorted(slices.Values(rates))
	return sorted[len(sorted)*95/100]
}

// Each other estimator has false alarms, or finds fewer faults in time, in the same simulated days.
func TestSimulate_OtherEstimatorsAreWorse(t *testing.T) {
	services := simulated.Recorded(t)
	names := []string{"this one", "95th percentile", "last value", "mean"}
	watchers := func() (all []*watcher) {
		for _, of := range []func([]float64) float64{nil, highOf, lastOf, meanOf} {
			w := newWatcher(Settings{})
			if of != nil {
				w.estimator = &simple{of: of}
			}
			all = append(all, w)
		}
		return all
	}
	var days [][]outcome
	for _, from := range []uint64{0, 20} { // all stops; accepts and says nothing
		days = append(days, simulateDays(services, from, 5, 6*hour, longest, watchers)...)
	}
	alarms, soon := make([]int, len(names)), make([]int, len(names))
	for i, name := range names {
		all := pick(days, i, func(outcome) bool { return true })
		alarms[i] = falseAlarms(all)
		for _, o := range all {
			if o.asked && o.found && o.after <= 15+o.remaining {
				soon[i]++
			}
		}
		t.Logf("%s: %d false alarms in %d days, %d faults found in time", name, alarms[i], len(all), soon[i])
	}
	require.Zero(t, alarms[0])
	for i := range names[1:] {
		require.True(t, alarms[i+1] > 0 || soon[i+1] <= soon[0]-2, names[i+1])
	}
}

// learned returns an estimator after samples of 10,000 bytes with these turns in seconds, one in a minute, and the time.
func learned(turns ...float64) (*prompts, time.Duration) {
	p, now := new(prompts), time.Duration(0)
	for _, turn := range turns {
		now += time.Minute
		p.served(now, sample{size: 10_000, uncached: 1, turn: duration(turn)})
	}
	return p, now
}

func expected(t *testing.T, p *prompts, now time.Duration, size int64) float64 {
	t.Helper()
	silence, ok := p.expect(now, size)
	require.True(t, ok)
	return silence.Seconds()
}

// With a cache that is not reported, the first uncached prompt takes much longer than those before it.
func TestEstimate_LargestOfTheFirstTenTurns(t *testing.T) {
	p, now := learned(2, 0.1, 0.1)
	require.InDelta(t, 2, expected(t, p, now, 10_000), 0.01)
	p, now = learned(0.1, 0.1, 2, 0.1, 0.1, 0.1)
	require.InDelta(t, 2, expected(t, p, now, 10_000), 0.01)
	p, now = learned(0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 2, 0.1)
	require.InDelta(t, 2, expected(t, p, now, 10_000), 0.05)
	p, now = learned(0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 2)
	require.InDelta(t, 0.113, expected(t, p, now, 10_000), 0.002, "2 to the power of 0.2 × 0.9 times 0.1")
}

func TestEstimate_FollowsThe90thPercentile(t *testing.T) {
	var turns []float64
	for i := range 2000 {
		turns = append(turns, float64(1+i*7%20)) // 1 to 20
	}
	p, now := learned(turns...)
	require.InDelta(t, 18, expected(t, p, now, 10_000), 2)
}

func TestEstimate_FallsWhenTheEngineBecomesFaster(t *testing.T) {
	turns := []float64{8, 8, 8}
	for range 400 {
		turns = append(turns, 1)
	}
	p, now := learned(turns...)
	require.InDelta(t, 1, expected(t, p, now, 10_000), 0.15)
}

func TestEstimate_UnknownBeforeThreeSamples(t *testing.T) {
	p, now := learned(1, 1)
	_, ok := p.expect(now, 10_000)
	require.False(t, ok)
	p, now = learned(1, 1, 1)
	expected(t, p, now, 10_000)
	p, now = learned(0, 1, 1)
	_, ok = p.expect(now, 10_000)
	require.False(t, ok, "a turn that took no time is no sample")
}

// A new engine that is busy is known soon.
func TestEstimate_TheFirstThreeSamplesNeedNoTimeBetween(t *testing.T) {
	p := new(prompts)
	for range 3 {
		p.served(0, sample{size: 10_000, uncached: 1, turn: second})
	}
	require.InDelta(t, 1, expected(t, p, 0, 10_000), 0.01)
}

// token_stream knows no sizes: all prompts are alike.
func TestEstimate_WithoutSizes(t *testing.T) {
	p, now := new(prompts), time.Duration(0)
	for range 3 {
		now += time.Minute
		p.served(now, sample{uncached: 1, turn: 2 * second})
	}
	require.InDelta(t, 2, expected(t, p, now, 0), 0.01)
	p.silent(now, sample{silence: 3 * second})
	require.InDelta(t, 3, expected(t, p, now, 0), 0.01)
	p.silent(now, sample{silence: 100 * second})
	require.InDelta(t, 6, expected(t, p, now, 0), 0.01)
}

func TestClassOf_DoublesFrom1KiBTo16MiB(t *testing.T) {
	for size, want := range map[int64]int{0: 0, 1023: 0, 1024: 1, 2047: 1, 2048: 2, 16<<20 - 1: 14, 16 << 20: 15, 1 << 40: 15} {
		require.Equal(t, want, classOf(size), "%d", size)
	}
}

// 10,000 bytes take 1 s: their class is from 8 KiB to 16 KiB.
func TestEstimate_OtherSizes(t *testing.T) {
	p, now := learned(1, 1, 1)
	require.InDelta(t, 1.2, expected(t, p, now, 12_000), 0.01, "the same class")
	require.InDelta(t, 0.1, expected(t, p, now, 1000), 0.01, "smaller than what is known")
	require.InDelta(t, 40_000./10_000*40_000/16_384, expected(t, p, now, 40_000), 0.1, "larger: with the square, from the end of the known class")
	for range 3 {
		now += time.Minute
		p.served(now, sample{size: 20_000, uncached: 1, turn: duration(0.1)})
	}
	require.InDelta(t, 8192./10_000, expected(t, p, now, 20_000), 0.01, "no less than smaller prompts")
	for range 3 {
		now += time.Minute
		p.served(now, sample{size: 40_000, uncached: 1, turn: duration(0.1)})
	}
	require.InDelta(t, 8192./10_000, expected(t, p, now, 40_000), 0.01, "of which the slowest counts")
	p, now = learned(1, 1, 1)
	for range 3 {
		now += time.Minute
		p.served(now, sample{size: 5000, uncached: 1, turn: duration(0.1)})
	}
	require.InDelta(t, 0.02, expected(t, p, now, 1000), 0.001, "if none is smaller, as the next larger ones")
}

func TestEstimate_CountsUncachedBytes(t *testing.T) {
	p, now := new(prompts), time.Duration(0)
	for _, cached := range []float64{0.4, 0.4, 0.4, 0.6, 0.6, 0.6} {
		now += time.Minute
		p.served(now, sample{size: 10_000, uncached: 1 - cached, turn: duration(0.6)})
	}
	require.InDelta(t, 1, expected(t, p, now, 10_000), 0.01, "mostly cached ones teach nothing")
}

// An hour of samples in a burst would outvote a day.
func TestEstimate_OneSampleIn20Seconds(t *testing.T) {
	p, now := learned(1, 1, 1)
	for i := range 1000 {
		p.served(now+time.Duration(i)*20*time.Millisecond, sample{size: 10_000, uncached: 1, turn: duration(50)})
	}
	require.InDelta(t, 1, expected(t, p, now, 10_000), 0.01)
	p.served(now+20*time.Second, sample{size: 10_000, uncached: 1, turn: duration(50)})
	require.InDelta(t, 50, expected(t, p, now+20*time.Second, 10_000), 0.01)
}

func TestEstimate_LongestSilenceDoublesAtMostAndIsHalvedIn12Hours(t *testing.T) {
	p, now := learned(1, 1, 1)
	silence := func(s float64) { p.silent(now, sample{size: 10_000, largest: 10_000, silence: duration(s)}) }
	silence(1.5)
	require.InDelta(t, 1.5, expected(t, p, now, 10_000), 0.01)
	silence(100)
	require.InDelta(t, 3, expected(t, p, now, 10_000), 0.01)
	silence(2)
	require.InDelta(t, 3, expected(t, p, now, 10_000), 0.01)
	require.InDelta(t, 1.5, expected(t, p, now+12*time.Hour, 10_000), 0.01)
	now += 12 * time.Hour
	silence(2)
	require.InDelta(t, 2, expected(t, p, now, 10_000), 0.01, "longer than what is left of it")
	require.InDelta(t, 1, expected(t, p, now+48*time.Hour, 10_000), 0.01, "turns do not decay")
}

// Prompts of 40,000 bytes are not known yet, other than by those of 10,000, which would take 9.8 s if they were so large.
func TestEstimate_ASilenceOfAnUnknownSizeDoublesWhatIsExpectedAndThenItself(t *testing.T) {
	p, now := learned(1, 1, 1)
	silence := func() { p.silent(now, sample{size: 40_000, largest: 40_000, silence: 100 * second}) }
	known := func() float64 {
		known := *p
		for range 3 {
			known.served(now, sample{size: 40_000, uncached: 1, turn: second})
		}
		return expected(t, &known, now, 40_000)
	}
	guess := 40_000. / 10_000 * 40_000 / 16_384
	silence()
	require.InDelta(t, 2*guess, known(), 0.1)
	silence()
	require.InDelta(t, 4*guess, known(), 0.1)
	silence()
	require.InDelta(t, 8*guess, known(), 0.1)
}

func TestEstimate_SilenceIsOfTheLargestPrompt(t *testing.T) {
	p, now := learned(1, 1, 1)
	p.silent(now, sample{size: 500, largest: 10_000, silence: duration(2)})
	require.InDelta(t, 2, expected(t, p, now, 10_000), 0.01)
	require.Zero(t, p.seen(), "first tokens of other sizes")
	p.silent(now, sample{size: 10_000, largest: 10_000})
	require.EqualValues(t, 1, p.seen())
}
