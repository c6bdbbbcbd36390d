// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// service sends requests of a table's replicas at a constant rate. Requests of 100 tokens, and prompts of 1,000, take two seconds.
type service struct {
	*Table
	start time.Time // of the next slot
	lag   time.Duration
	takes time.Duration
}

func newService() *service {
	return &service{Table: NewTable([]Objective{{"all", 0.9, week}}), start: origin, takes: 2 * time.Second}
}

// now is when the last request was recorded.
func (s *service) now() time.Time { return s.start.Add(s.lag) }

// request records one that began at a time.
func (s *service) request(series, replica string, at time.Time, v Verdict) {
	end := at.Add(s.takes)
	s.Record([]byte(series), &Request{
		Vantage: "engine", Replica: replica, Start: at, End: end,
		Sized: true, Output: 100, Prompt: 1000, Verdicts: [MaxObjectives]Verdict{v},
	}, end.Add(s.lag))
}

// serve sends requests for slots, evenly, of which each replica gets as many.
func (s *service) serve(slots, perSlot int, v Verdict, replicas ...string) {
	for range slots {
		for i := range perSlot {
			for _, r := range replicas {
				s.request("m", r, s.start.Add(time.Duration(i)*Slot/time.Duration(perSlot)), v)
			}
		}
		s.start = s.start.Add(Slot)
	}
}

func (s *service) state(t *testing.T) *State {
	t.Helper()
	var all []State
	s.Visit(s.now(), func(s *State) { all = append(all, *s) })
	require.Len(t, all, 1)
	return &all[0]
}

// toKnee serves 10 requests/s on each replica for two hours, and then 20, which miss the objective.
func (s *service) toKnee(replicas ...string) {
	s.serve(480, 150, Good, replicas...)
	s.serve(20, 300, Good, replicas...)
	s.serve(120, 300, Bad, replicas...)
}

func TestTable_LearnsTheLimitOfAReplicaFromAll(t *testing.T) {
	s := newService()
	require.Empty(t, visited(s.Table, s.now()))
	s.serve(8, 150, Good, "a", "b")
	state := s.state(t)
	require.Equal(t, TooFew, state.Reason)
	require.False(t, state.Known())
	s.toKnee("a", "b")
	state = s.state(t)
	require.Empty(t, state.Reason)
	require.InDelta(t, 10, state.Limit[Requests], 0.5)
	require.InDelta(t, 100*state.Limit[Requests], state.Limit[OutputTokens], 1e-6)
	require.InDelta(t, 2*state.Limit[PromptTokens], state.TotalLimit()[PromptTokens], 1e-6)
	require.Len(t, state.Replicas, 2)
	require.Equal(t, "a", state.Replicas[0].Replica)
	require.InDelta(t, 20, state.Replicas[0].Load[Requests], 0.2)
	require.InDelta(t, 40, state.Load[Requests], 0.4)
	require.InDelta(t, 4000, state.Load[OutputTokens], 40)
	require.InDelta(t, 2, state.TotalUtilization(), 0.1)
	require.Equal(t, 0.0, state.Room())
	require.Contains(t, []float64{4, 5}, state.ReplicasNeeded(state.Load), "40 requests/s at about 10 each")
	require.Equal(t, 1.0, state.ReplicasNeeded(state.Sized(state.Limit[Requests])))
	require.Equal(t, 2.0, state.ReplicasNeeded(state.Sized(1.01*state.Limit[Requests])))
	require.Zero(t, s.Dropped())

	s.serve(12, 75, Good, "a", "b", "c")
	state = s.state(t)
	require.Len(t, state.Replicas, 3)
	require.InDelta(t, 3*state.Limit[Requests]-15, state.Room(), 0.5, "5 requests/s each")
}

func visited(table *Table, now time.Time) (all []State) {
	table.Visit(now, func(s *State) { all = append(all, *s) })
	return all
}

// A tenant's limit is the load of the whole replica at which the tenant's objective is met.
func TestTable_TheLoadOfAReplicaIsThatOfAllItsSeries(t *testing.T) {
	s := newService()
	both := func(slots, perSlot int, v Verdict) {
		for range slots {
			for i := range perSlot {
				at := s.start.Add(time.Duration(i) * Slot / time.Duration(perSlot))
				s.request("small", "a", at, v)
				for range 19 {
					s.request("large", "a", at, Good)
				}
			}
			s.start = s.start.Add(Slot)
		}
	}
	both(480, 8, Good)
	both(20, 16, Good)
	both(120, 16, Bad)
	states := map[string]State{}
	for _, of := range visited(s.Table, s.now()) {
		states[of.Series] = of
	}
	small := states["small"]
	require.Empty(t, small.Reason)
	require.InDelta(t, 160/15.0, small.Limit[Requests], 1)
	require.InDelta(t, 320/15.0, small.Load[Requests], 0.3)
	require.Equal(t, KneeNotSeen, states["large"].Reason)
}

// A series with a request now and then learns at the load of the replica at that time, too.
func TestTable_LearnsFromSeriesWithFewRequests(t *testing.T) {
	s := newService()
	hours := func(n, perSlot int, v Verdict) {
		for range n {
			s.serve(240, perSlot, v, "a")
			s.request("tenant", "a", s.start, v)
		}
	}
	hours(50, 15, Good)
	hours(22, 30, Bad)
	s.serve(50, 30, Bad, "a")
	states := map[string]State{}
	for _, of := range visited(s.Table, s.now()) {
		states[of.Series] = of
	}
	require.Empty(t, states["tenant"].Reason)
	require.InDelta(t, states["m"].Limit[Requests], states["tenant"].Limit[Requests], 0.05)
}

// After a restart, the averages of the load start anew: slots that miss the objective at once must not count as missed at nearly no load.
func TestTable_ARestartInAnOverloadKeepsTheLimit(t *testing.T) {
	before := newService()
	before.toKnee("a", "b")
	limit := before.state(t).Limit
	for range 3 {
		after := newService()
		after.start = before.start
		before.Save(func(k Key, _ Version, encode func() []byte) {
			require.NoError(t, after.Restore(k, encode(), before.now()))
		})
		after.serve(120, 300, Bad, "a", "b")
		require.Equal(t, limit, after.state(t).Limit)
		before = after
	}
}

// The rate counts requests that are still open by how long others took. The truth is the rate at which the test sends.
func TestTable_LoadIsThatOfRequestsThatBegan(t *testing.T) {
	for _, takes := range []time.Duration{0, 10 * time.Second, 50 * time.Second, 3 * time.Minute} {
		t.Run(takes.String(), func(t *testing.T) {
			s := newService()
			s.takes = takes
			send := func(slots, perSlot int) {
				for range slots * perSlot {
					s.start = s.start.Add(Slot / time.Duration(perSlot))
					s.request("m", "a", s.start.Add(-takes), Good) // ends now
				}
			}
			send(60, 150)
			require.InDelta(t, 10, s.state(t).Load[Requests], 0.3)
			send(int(takes/Slot)+7, 300)
			require.InDelta(t, 20, s.state(t).Load[Requests], 0.8, "a minute after the requests of half the duration ended")
		})
	}
}

func TestTable_AReplicaWithoutRequestsHasNoLoad(t *testing.T) {
	s := newService()
	s.toKnee("a", "b")
	s.serve(16, 150, Good, "a")
	state := s.state(t)
	require.Len(t, state.Replicas, 2)
	require.Zero(t, state.Replicas[1].Load[Requests])
	s.serve(16, 150, Good, "a")
	require.Len(t, s.state(t).Replicas, 1, "gone after five minutes")

	s.start = s.start.Add(gone + time.Minute)
	state = s.state(t)
	require.Empty(t, state.Replicas)
	require.Empty(t, state.Reason)
	require.False(t, state.Known(), "that nothing arrives may be a fault of the pipeline")
}

func TestTable_RefusedRequestsAreLoad(t *testing.T) {
	s := newService()
	s.serve(60, 75, Good, "a")
	for range 8 * 75 {
		at := s.start
		s.start = s.start.Add(Slot / 75)
		s.request("m", "a", at, Good)
		s.Record([]byte("m"), &Request{Vantage: "engine", Replica: "a", Start: at, End: at}, at)
	}
	state := s.state(t)
	require.InDelta(t, 10, state.Load[Requests], 0.2)
	require.InDelta(t, 1000, state.Load[OutputTokens], 20, "of mean size")
}

// Requests may come in any order of their replicas, from any time, and from clocks that are ahead.
func TestTable_FollowsTheClockOfEachReplica(t *testing.T) {
	together, apart := newService(), newService()
	together.toKnee("a", "b")
	for _, r := range []string{"a", "b"} {
		apart.start, apart.lag = origin, 0
		apart.toKnee(r)
	}
	require.Equal(t, together.state(t).Limit, apart.state(t).Limit)

	ahead := newService()
	ahead.Record([]byte("m"), &Request{Replica: "a", Start: origin.Add(time.Hour), End: origin.Add(2 * time.Hour), Verdicts: [MaxObjectives]Verdict{Good}}, origin)
	require.Equal(t, origin, ahead.subjects["m"].latest)
}

func TestTable_LateRequestsAreCounted(t *testing.T) {
	s := newService()
	s.serve(60, 10, Good, "a")
	s.request("m", "a", s.start.Add(-11*time.Minute), Good)
	s.request("m", "a", s.start.Add(-9*time.Minute), Good)
	s.request("m", "a", origin.Add(-time.Hour), Good)
	require.Equal(t, Dropped{Late: 1}, s.Dropped(), "before the first request, nothing is complete")
}

// OTLP timestamps have 64 bits: those over 63 bits are before 1970 as a time.Time.
func TestTable_TimesBefore1970AreLate(t *testing.T) {
	s := newService()
	for at := range 5 {
		s.request("m", "a", time.Unix(0, math.MinInt64).Add(time.Duration(at)*time.Minute), Good)
	}
	require.Equal(t, Dropped{Late: 5}, s.Dropped())
}

func TestTable_IsBounded(t *testing.T) {
	s := newService()
	for i := range MaxReplicas {
		s.request("m", fmt.Sprint("replica ", i), s.start, Good)
	}
	s.request("m", "one more", s.start, Good)
	require.Equal(t, Dropped{Replicas: 1}, s.Dropped())
	for i := range MaxShares {
		s.request(fmt.Sprint("on one replica ", i), "replica 0", s.start, Good)
	}
	require.Equal(t, Dropped{Replicas: 1, Series: 1}, s.Dropped())
	for i := range MaxLimits {
		s.request(fmt.Sprint("series ", i), fmt.Sprint("replica ", i), s.start, Good)
	}
	require.Len(t, s.subjects, MaxLimits)
	require.Equal(t, Dropped{Replicas: 1, Series: 1 + MaxShares}, s.Dropped())

	s.start = s.start.Add(2 * time.Hour)
	s.request("new", "new", s.start, Good)
	require.Len(t, s.subjects, MaxLimits)
	require.NotNil(t, s.subjects["new"])
	require.Len(t, s.instances, 1, "those without requests made room")
	require.Equal(t, Dropped{Replicas: 1, Series: 1 + MaxShares}, s.Dropped())
}

func TestState_ReplicasNeededForMultiplesOfTheLimit(t *testing.T) {
	s := State{Answer: Answer{Limit: Load{0.7, 0.7 * 311, 0.7 * 1013}}, mean: Load{1, 311, 1013}}
	for n := range 1000 {
		require.Equal(t, float64(n), s.ReplicasNeeded(s.Sized(0.7*float64(n))))
		require.Equal(t, float64(n+1), s.ReplicasNeeded(s.Sized(0.7*float64(n)+1e-6)))
	}
	require.False(t, math.Signbit(s.ReplicasNeeded(Load{})), "-0 is no number of replicas")
}

func TestState_WithoutALimitNothingIsKnown(t *testing.T) {
	s := State{Answer: Answer{Reason: MixChanged}, Replicas: []ReplicaLoad{{}}}
	require.False(t, s.Known())
	require.True(t, math.IsNaN(s.ReplicasNeeded(Load{1, 1, 1})))
}

// The last slots of a replica that a deploy replaced are learned from, too, and it takes no place for long.
func TestTable_SlotsOfReplicasThatAreGoneAreLearned(t *testing.T) {
	s := newService()
	s.serve(100, 15, Good, "old")
	learned := s.subjects["m"].slots
	s.serve(60, 15, Good, "new")
	require.Len(t, s.instances, 1)
	require.GreaterOrEqual(t, s.subjects["m"].slots, learned+uint64(held)-1)
}

// A sender that names another replica and series in each request costs no look through all of them each time.
func TestTable_LooksThroughAllOnceAMinute(t *testing.T) {
	s := newService()
	for i := range MaxLimits {
		s.request(fmt.Sprint("series ", i), fmt.Sprint("replica ", i), s.start, Good)
	}
	s.start = s.start.Add(30 * time.Second)
	for _, i := range s.instances {
		i.arrived = i.arrived.Add(-time.Hour)
	}
	s.request("series 0", "replica 0", s.start, Good)
	require.Len(t, s.instances, MaxReplicas, "the last look was less than a minute ago")
	s.start = s.start.Add(30 * time.Minute) // all replicas are gone
	s.request("series 0", "replica 0", s.start, Good)
	require.Len(t, s.instances, 1)
	s.request("one more", "replica 0", s.start, Good)
	require.Equal(t, Dropped{Series: 1}, s.Dropped(), "none is idle for an hour")
	s.subjects["series 1"].arrived = s.start.Add(-2 * idle)
	s.request("one more", "replica 0", s.start.Add(10*time.Second), Good)
	require.Equal(t, Dropped{Series: 2}, s.Dropped())
	s.request("one more", "replica 0", s.start.Add(2*time.Minute), Good)
	require.Equal(t, Dropped{Series: 2}, s.Dropped())
	require.Nil(t, s.subjects["series 1"])
}

// The race detector sees a missing lock.
func TestTable_MayBeUsedConcurrently(t *testing.T) {
	s := newService()
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 500 {
				at := s.start.Add(time.Duration(i) * time.Second)
				r := Request{Vantage: "engine", Replica: fmt.Sprint(worker%2, i%7), Start: at, End: at.Add(time.Second), Sized: true, Output: 1, Prompt: 1}
				s.Record(fmt.Append(nil, "series ", i%3), &r, r.End)
				if i%50 == worker {
					s.Visit(at, func(s *State) { _ = s.Room() })
					s.Save(func(_ Key, _ Version, encode func() []byte) { _ = encode() })
					_ = s.Dropped()
				}
			}
		})
	}
	wait.Wait()
	require.Len(t, s.subjects, 3)
	require.Zero(t, s.Dropped())
}
