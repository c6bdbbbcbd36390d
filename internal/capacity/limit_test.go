// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// feeder gives one replica slots with a constant load.
type feeder struct {
	*Limit
	replica *sustained
	at      time.Time
}

func newFeeder(objective float64) *feeder {
	l := New(objective, week)
	return &feeder{l, l.replica(), origin}
}

// serve adds slots with requests of 100 tokens each, and prompts of 1,000.
func (f *feeder) serve(slots int, requests, bad uint64) {
	f.serveSized(slots, requests, bad, 100, 1000)
}

func (f *feeder) serveSized(slots int, requests, bad, output, prompt uint64) {
	for range slots {
		f.replica.add(f.at, offer{Good: requests - bad, Bad: bad, Output: requests * output, Prompt: requests * prompt})
		f.at = f.at.Add(slot)
	}
}

// toKnee serves 20 requests/s for 5 hours, and 30 until the averages have that and the objective was missed often.
func (f *feeder) toKnee() {
	f.serve(1200, 300, 0)
	f.serve(240, 450, 0)
	f.serve(40, 450, 450)
}

func TestLimit_IsTheHighestLoadThatMetTheObjective(t *testing.T) {
	f := newFeeder(0.99)
	require.Equal(t, Answer{Reason: TooFew}, f.Answer(f.at))
	f.serve(1200, 300, 0)
	a := f.Answer(f.at)
	require.Equal(t, KneeNotSeen, a.Reason)
	require.InDelta(t, 20, a.Limit[Requests], 1, "so far")
	require.True(t, math.IsNaN(a.Utilization(f.replica.short)))

	f.serve(100, 450, 0)
	f.serve(neededMissed-1, 450, 450)
	require.Equal(t, KneeNotSeen, f.Answer(f.at).Reason)
	f.serve(neededMissed, 450, 450)
	a = f.Answer(f.at)
	require.Empty(t, a.Reason)
	require.Equal(t, f.at.Add(-slot).Unix(), a.MissedAt.Unix())
	require.LessOrEqual(t, a.Limit[Requests], 20*math.Exp2(1./perDoubling), "less than was missed")
	require.InDelta(t, 20, a.Limit[Requests], 1)
	require.InDelta(t, 100*a.Limit[Requests], a.Limit[OutputTokens], 1e-6)
	require.InDelta(t, 1000*a.Limit[Requests], a.Limit[PromptTokens], 1e-6)
	require.InDelta(t, 1.5, a.Utilization(f.replica.short), 0.08, "30 requests/s")
}

func TestLimit_UtilizationIsTheLargestOfItsKinds(t *testing.T) {
	a := Answer{Limit: Load{10, 1000, 5000}}
	require.Equal(t, 0.5, a.Utilization(Load{9, 500, 1000}))
	require.Equal(t, 0.8, a.Utilization(Load{9, 500, 4000}))
	embeddings := Answer{Limit: Load{10, 0, 5000}}
	require.Equal(t, 0.8, embeddings.Utilization(Load{9, 0, 4000}))
	withoutUsage := Answer{Limit: Load{10, 0, 0}}
	require.Equal(t, 0.9, withoutUsage.Utilization(Load{9, 0, 0}), "a load is not none because an engine reports zero tokens")
}

func TestLimit_GetsStaleAndIsForgotten(t *testing.T) {
	f := newFeeder(0.9)
	f.toKnee()
	require.False(t, f.Answer(f.at.Add(23*time.Hour)).Stale)
	a := f.Answer(f.at.Add(25 * time.Hour))
	require.True(t, a.Stale)
	require.Empty(t, a.Reason)
	require.Empty(t, f.Answer(f.at.Add(167*time.Hour)).Reason)
	require.Equal(t, Answer{Reason: KneeNotSeen}, f.Answer(f.at.Add(169*time.Hour)))
	require.Equal(t, TooFew, f.Answer(f.at.Add(169*time.Hour)).Reason, "all is forgotten")
}

func TestLimit_OfAnotherMixIsAbsentUntilItIsLearned(t *testing.T) {
	f := newFeeder(0.9)
	f.toKnee()
	before := f.Answer(f.at)
	require.Empty(t, before.Reason)

	f.serveSized(20, 100, 0, 190, 1900)
	require.Empty(t, f.Answer(f.at).Reason, "less than twice as long")
	f.serveSized(100, 100, 0, 300, 1000)
	require.Equal(t, Answer{Reason: MixChanged}, f.Answer(f.at))
	f.serve(100, 100, 0)
	require.InDelta(t, before.Limit[Requests], f.Answer(f.at).Limit[Requests], 1e-9, "requests are as before")

	f.serveSized(600, 120, 0, 300, 1000)
	f.serveSized(60, 180, 180, 300, 1000)
	a := f.Answer(f.at)
	require.Empty(t, a.Reason)
	require.InDelta(t, 8, a.Limit[Requests], 1)
	require.InDelta(t, 300, a.Limit[OutputTokens]/a.Limit[Requests], 15)

	f.serve(100, 100, 0)
	require.InDelta(t, before.Limit[Requests], f.Answer(f.at).Limit[Requests], 1e-9, "two mixes are remembered")
}

func TestSustained_CountsRefusedRequestsAsMeanOnes(t *testing.T) {
	f := newFeeder(0.99)
	f.serve(400, 300, 0)
	for range 400 {
		f.replica.add(f.at, offer{Good: 150, Bad: 450, Unsized: 450, Output: 15000, Prompt: 150000})
		f.at = f.at.Add(slot)
	}
	for kind, want := range [...]float64{40, 4000, 40000} {
		require.InDelta(t, want, f.replica.short[kind], 1e-6)
	}
}

func TestSustained_SlotsThatAreLeftOutAreEmpty(t *testing.T) {
	a, b := newFeeder(0.99), newFeeder(0.99)
	a.serve(100, 300, 0)
	b.serve(100, 300, 0)
	a.serve(3, 0, 0)
	a.serve(1, 300, 0)
	b.at = b.at.Add(3 * slot)
	b.serve(1, 300, 0)
	require.InDelta(t, a.replica.short[Requests], b.replica.short[Requests], 1e-9)
	require.InDelta(t, a.replica.long[Requests], b.replica.long[Requests], 1e-9)
}

// A burst of a minute says nothing about a load that stays.
func TestSustained_ABurstIsNoSustainedLoad(t *testing.T) {
	f := newFeeder(0.9)
	f.serve(400, 150, 0)
	for range 100 {
		f.serve(4, 900, 0)
		f.serve(56, 150, 0)
	}
	require.Less(t, f.Answer(f.at).Limit[Requests], 20.0, "60 requests/s for a minute in 15, else 10: 13.3 in the mean")
}

// Before, the averages do not know the load: after a restart in an overload, slots would count as missed at nearly none.
func TestSustained_TheFirstTenMinutesTeachNothing(t *testing.T) {
	f := newFeeder(0.9)
	f.serve(39, 450, 450)
	require.Equal(t, curve{}, f.learned.curve)
	f.serve(1, 450, 450)
	require.NotEqual(t, curve{}, f.learned.curve)
}
