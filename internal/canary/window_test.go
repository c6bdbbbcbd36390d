// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// after returns a time in seconds after epoch.
func after(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// one adds a good request.
func one(p *Pair, start, now int, arm Arm) {
	p.Add(after(start), after(now), tick*time.Second, arm, "a", Counts{Requests: 1, Eligible: 1}, nil)
}

// starts returns the starts of the open windows after epoch.
func starts(p *Pair) (s []int64) {
	for _, w := range p.open {
		s = append(s, w.start-epoch.Unix())
	}
	return s
}

func TestAdd_WindowsCloseTwoMinutesAfterTheirEnd(t *testing.T) {
	p := NewPair(Settings{}, epoch)
	one(p, 5, 8, Baseline)
	one(p, 19, 20, Candidate)
	p.Add(after(30), after(30), time.Minute, Baseline, "a", Counts{Requests: 3}, nil)
	require.Equal(t, []int64{0, 10, 0}, starts(p), "in the order of their ends")
	p.Advance(after(129))
	require.Zero(t, p.arms[Baseline].requests)
	p.Advance(after(130))
	require.Equal(t, uint64(1), p.arms[Baseline].requests)
	p.Advance(after(179))
	require.Equal(t, uint64(1), p.arms[Candidate].requests)
	p.Advance(after(180))
	require.Equal(t, uint64(4), p.arms[Baseline].requests)
	require.Empty(t, p.open)
}

func TestAdd_LateRequestsCountAsUnmeasuredInTheOldestWindow(t *testing.T) {
	p := NewPair(Settings{Percentile: 0.5}, epoch)
	var values sketch.Sketch
	values.Add(1, 2)
	late := Counts{Requests: 2, Eligible: 2, Bad: 1, Unsuccessful: 1, Mistakes: 1}
	p.Add(after(9), after(1000), tick*time.Second, Candidate, "a", late, &values)
	require.Equal(t, []int64{880}, starts(p))
	g := p.open[0].arms[Candidate][0].value
	require.Equal(t, group{counts: Counts{Requests: 2, Unmeasured: 2, Unsuccessful: 1}}, g)
	p.Advance(after(1009))
	require.Len(t, p.open, 1)
	p.Advance(after(1010))
	require.Empty(t, p.open)
}

func TestAdd_IgnoresRequestsBeforeThePair(t *testing.T) {
	p := NewPair(Settings{}, after(5))
	one(p, 4, 6, Baseline)
	require.Empty(t, p.open)
	one(p, 5, 6, Baseline)
	require.Equal(t, []int64{0}, starts(p))
}

func TestAdd_StartInTheFutureCountsNow(t *testing.T) {
	p := NewPair(Settings{}, epoch)
	one(p, 86400, 15, Baseline)
	require.Equal(t, []int64{10}, starts(p))
}

func TestAdvance_ClockSteps(t *testing.T) {
	for _, c := range []struct {
		name     string
		clock    []int
		expected []int64
	}{
		{"back by less than the delay", []int{1000, 890}, []int64{890, 1000}},
		{"back by more", []int{1000, 879}, []int64{870}},
		{"before the pair began", []int{1000, -86400}, []int64{-86400}},
		{"forward", []int{1000, 86400}, []int64{86400}},
		{"forward and back", []int{1000, 86400, 1010}, []int64{1010}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewPair(Settings{Percentile: 0.5}, epoch)
			for _, now := range c.clock {
				one(p, now, now, Baseline)
			}
			require.Equal(t, c.expected, starts(p))
			require.False(t, p.since.After(after(c.clock[len(c.clock)-1])))
			require.Equal(t, Undecided, p.Answer(Question{Alpha: 0.05}).Verdict)
		})
	}
}

// The windows of a pair are bounded, whatever its callers' clocks show.
func TestAdd_BoundsWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	p := NewPair(Settings{Percentile: 0.5}, epoch)
	now, most := 0, 0
	var values sketch.Sketch
	values.Add(1, 1)
	for i := range 20_000 {
		now += random.IntN(3)
		if i%1000 == 0 {
			now += random.IntN(100_000) - 50_000
		}
		length := tick * time.Second
		if i%5 == 0 {
			length = time.Minute
		}
		start := now - random.IntN(200) + random.IntN(10)
		p.Add(after(start), after(now), length, Arm(i%2), "a", Counts{Requests: 1}, &values)
		most = max(most, len(p.open))
		require.LessOrEqual(t, len(p.recent), maxRecent)
	}
	require.Equal(t, maxOpen, most)
}

func TestWindow_FoldsReplicasOfHighHashes(t *testing.T) {
	var expected, folded uint64
	var w window
	list := &w.arms[Baseline]
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 5000 {
		replica := hash("pod-" + strconv.Itoa(random.IntN(100)))
		folded += w.add(Baseline, replica, Counts{Requests: 1}, nil)
		if i == 3000 {
			// By now all replicas were there, and those of the lowest hashes stay.
			require.Len(t, *list, maxReplicas+1)
			expected = (*list)[0].value.counts.Requests
		}
		if i > 3000 && replica > (*list)[maxReplicas].replica {
			expected++
		}
	}
	require.Equal(t, expected, (*list)[0].value.counts.Requests)
	require.Equal(t, expected, folded)
	requireComplete(t, *list, 5000)
	require.Equal(t, uint64(maxReplicas), known(*list))
}

// requireComplete checks that the groups of a list are in order, and have all requests.
func requireComplete(t *testing.T, list []entry[group], requests uint64) {
	t.Helper()
	var all uint64
	for i := range list {
		require.True(t, i == 0 || list[i-1].replica < list[i].replica)
		all += list[i].value.counts.Requests
	}
	require.Equal(t, requests, all)
}

// A window with values in many buckets keeps all values, and tells fewer replicas apart. Metrics have the requests
// of all replicas before their values: both count in the same group.
func TestWindow_BoundsTheBucketsOfAnArm(t *testing.T) {
	var w window
	var many, few sketch.Sketch
	for i := range 300 {
		many.Add(math.Exp2((float64(i)+0.5)/64), 1)
	}
	few.Add(1, 300)
	const replicas = 20
	var folded uint64
	for range 2 {
		for replica := range uint64(replicas) {
			folded += w.add(Candidate, replica+1, Counts{Requests: 300}, nil)
		}
		for replica := range uint64(replicas) {
			values := &many
			if replica == replicas-1 {
				values = &few
			}
			folded += w.add(Candidate, replica+1, Counts{}, values)
			require.LessOrEqual(t, buckets(w.arms[Candidate]), maxArmBuckets)
		}
	}
	list := w.arms[Candidate]
	requireComplete(t, list, 2*replicas*300)
	require.Equal(t, uint64(12), known(list), "300 buckets each, and once more for the others")
	require.Equal(t, uint64(2*8*300), folded)
	for i := range list {
		require.Equal(t, list[i].value.counts.Requests, list[i].value.values.over(math.MaxInt).n)
	}
	require.Empty(t, w.arms[Baseline])
}

// FNV-1a has published values: a restart must not change the hash.
func TestHash_PublishedValues(t *testing.T) {
	require.Equal(t, uint64(0xaf63dc4c8601ec8c), hash("a"))
	require.Equal(t, uint64(0x85944171f73967e8), hash("foobar"))
	require.Zero(t, hash(""))
}

func TestDistribution_KeepsABoundedNumberOfBuckets(t *testing.T) {
	var d distribution
	for i := range int16(maxBuckets) {
		d.add(2*i, 1)
	}
	d.add(-100, 1)
	d.add(5000, 2)
	d.add(7, 3)
	d.add(8, math.MaxUint64)
	require.Len(t, d, maxBuckets)
	require.Equal(t, bucket{0, 2}, d[0])
	require.Equal(t, bucket{2 * (maxBuckets - 1), 3}, d[maxBuckets-1])
	require.Equal(t, bucket{8, maxCount}, d[4], "counts end at the largest number")
}

func TestLimits_ThresholdsOfAPercentile(t *testing.T) {
	p := NewPair(Settings{Percentile: 0.9, Tolerance: 0.1}, epoch)
	add := func(start int, v float64) {
		var values sketch.Sketch
		values.Add(v, 100)
		p.Add(after(start), after(start), tick*time.Second, Baseline, "a", Counts{Requests: 100}, &values)
		values.Add(99, 900)
		p.Add(after(start), after(start), tick*time.Second, Candidate, "a", Counts{Requests: 1000}, &values)
	}
	limitsOf := func(start int) limits { return p.limits(&window{start: epoch.Unix() + int64(start), length: 10}) }
	add(0, 1)
	p.Advance(after(130))
	require.False(t, limitsOf(0).known, "a window does not set its own threshold")
	l := limitsOf(10)
	require.True(t, l.known)
	require.Equal(t, sketch.Index(1), l.threshold)
	// 1.1 is between the edges 2^(8/64) = 1.0905 and 2^(9/64) = 1.1024.
	require.InEpsilon(t, math.Exp2(8./64), sketch.UpperBound(l.shifted), 1e-12)
	require.InEpsilon(t, math.Exp2(9./64), sketch.UpperBound(l.beyond), 1e-12)

	add(10, 4)
	p.Advance(after(140))
	require.Equal(t, sketch.Index(4), limitsOf(20).threshold)
	require.Equal(t, sketch.Index(4), limitsOf(610).threshold, "the window from 0 on is too old")
	require.False(t, limitsOf(620).known)

	add(20, 2)
	p.Advance(after(150))
	require.Equal(t, sketch.Index(4), limitsOf(600).threshold, "the 90th percentile of 1, 4 and 2")
	require.Equal(t, sketch.Index(2), limitsOf(611).threshold, "1 and 4 are too old")

	p.settings.Tolerance = 0
	l = limitsOf(30)
	require.Equal(t, []int{1, 1}, []int{l.shifted - l.threshold, l.beyond - l.threshold}, "at least one bucket")
	p.settings.Tolerance = math.Exp2(3./64) - 1
	l = limitsOf(30)
	require.Equal(t, []int{3, 3}, []int{l.shifted - l.threshold, l.beyond - l.threshold}, "at an edge")
}

// After a clock has stepped back, the windows before it do not fill the list.
func TestRecentValues_ForgetWindowsAfterTheLatest(t *testing.T) {
	var r recentValues
	for _, start := range []int64{100, 110, 50} {
		w := window{start: start, length: tick}
		at(&w.arms[Baseline], 1).values.add(7, 1)
		r.add(&w)
	}
	require.Equal(t, recentValues{{start: 50, length: tick, values: distribution{{7, 1}}}}, r)
}

// If the requests of a block are independent, the scaled chi-square has its degrees of freedom as
// its mean.
func TestSpread_MeanOfIndependentRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var s spread
	const bad = 3
	for range 20_000 {
		sizes := []int{1, 3, 5, 2}
		replicas := make([]entry[observation], len(sizes))
		var owners []int
		for i, n := range sizes {
			replicas[i].value[judged].n = uint64(n)
			for range n {
				owners = append(owners, i)
			}
		}
		random.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
		for _, owner := range owners[:bad] {
			replicas[owner].value[judged].bad++
		}
		s.add(replicas, judged)
	}
	require.Equal(t, uint64(60_000), s.freedom)
	require.InEpsilon(t, 60_000, s.chiSquare, 0.02)
}

// Blocks of ten seconds in which one of two replicas has all bad requests, by hand: 10 of 20 requests
// are bad, so that chi-square is 20, times 19/20.
func TestDispersion_ByHand(t *testing.T) {
	p := NewPair(Settings{}, epoch)
	window := func(i int) {
		start := after(10 * i)
		for replica := range 2 {
			c := Counts{Requests: 10, Eligible: 10}
			if i%2 == replica {
				c.Bad = 10
			}
			p.Add(start, start, tick*time.Second, Baseline, strconv.Itoa(replica), c, nil)
		}
	}
	for i := range 5 {
		window(i)
	}
	p.Advance(after(170))
	spreads := p.tests[judged].spreads
	require.Equal(t, spread{4 * 19, 4}, spreads[0], "the fifth block is not finished")
	require.Zero(t, spreads[1].freedom)
	require.Equal(t, 19.0, p.tests[judged].dispersion())
	for i := 5; i < 7; i++ {
		window(i)
	}
	p.Advance(after(190))
	require.Equal(t, spread{0, 1}, p.tests[judged].spreads[1], "over a minute both replicas have as many")
	require.Equal(t, spread{}, p.tests[judged].spreads[2])
	require.Equal(t, 1.0, p.tests[coverage].dispersion())
}

// A window counts by the dispersion of those before it.
func TestClose_DividesByTheDispersionOfEarlierWindows(t *testing.T) {
	p := NewPair(Settings{}, epoch)
	counts := func(bad uint64) Counts { return Counts{Requests: 10, Eligible: 10, Bad: bad} }
	for i := range 2 {
		start := after(10 * i)
		p.Add(start, start, tick*time.Second, Baseline, "a", counts(4), nil)
		p.Add(start, start, tick*time.Second, Baseline, "b", counts(0), nil)
		p.Add(start, start, tick*time.Second, Candidate, "c", counts(3), nil)
	}
	p.Advance(after(130))
	var l likelihood
	l.add(trials{20, 4}, trials{10, 3}, 1)
	require.Equal(t, l, p.tests[judged].likelihood)
	p.Advance(after(140))
	// chi-square of 4 and 0 of 10 each: (2²/2 + 2²/2) / 0.8 · 19/20 = 4.75
	l.add(trials{20, 4}, trials{10, 3}, 4.75)
	require.InDelta(t, l[0], p.tests[judged].likelihood[0], 1e-12)
}
