// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// live is traffic of which requests arrive as they end.
type live struct {
	*rand.Rand
	perSecond float64
	takes     float64 // seconds in the mean, exponential
	replica   func(at time.Time) string
	arrives   func(end time.Time) time.Time // nil if at once
}

// send sends the requests that arrive within a time, and calls check after each 5 seconds.
func (l *live) send(s *service, length time.Duration, check func(since time.Duration)) {
	type arrival struct {
		Request
		at time.Time
	}
	var all []arrival
	begin, end := s.now(), s.now().Add(length)
	for at := begin.Add(-wait); at.Before(end); at = at.Add(time.Duration(l.ExpFloat64() / l.perSecond * float64(time.Second))) {
		a := arrival{Request: Request{Vantage: "engine", Replica: l.replica(at), Start: at, Sized: true, Output: 100, Prompt: 1000, Verdicts: [MaxObjectives]Verdict{Good}}}
		a.End = at.Add(time.Duration(min(l.takes*l.ExpFloat64(), 590) * float64(time.Second)))
		a.at = a.End
		if l.arrives != nil {
			a.at = l.arrives(a.End)
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Or(a.at.Compare(b.at), a.End.Compare(b.End)) })
	next := begin
	for i := range all {
		if all[i].at.Before(begin) {
			continue
		}
		for ; next.Before(all[i].at) && !next.After(end); next = next.Add(5 * time.Second) {
			s.start, s.lag = next, 0
			check(next.Sub(begin))
		}
		if all[i].at.After(end) {
			return
		}
		s.Record([]byte("m"), &all[i].Request, all[i].at)
	}
}

// restarted returns a table that knows the limit of others, and no replica.
func restarted(t *testing.T, s *service) *service {
	t.Helper()
	after := newService()
	after.start = s.start
	s.Save(func(k Key, _ Version, encode func() []byte) { require.NoError(t, after.Restore(k, encode(), s.now())) })
	return after
}

func anyOf(r *rand.Rand, names ...string) func(time.Time) string {
	return func(time.Time) string { return names[r.IntN(len(names))] }
}

func manyNames(kind string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(kind, i))
	}
	return all
}

// Right after the start, only short requests have been seen from their beginning, and only some replicas. An autoscaler must not take that
// for the load. The truth is the rate at which the test sends.
func TestPresent_IsUnknownOrRightAfterTheStart(t *testing.T) {
	s := newService()
	s.toKnee("a")
	for _, takes := range []float64{1, 20, 60, 120} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			s := restarted(t, s)
			r := rand.New(rand.NewPCG(1, 2))
			names := manyNames("r", 10)
			begin, known := s.now(), false
			l := live{Rand: r, perSecond: 50, takes: takes, replica: func(at time.Time) string {
				if at.Before(begin.Add(time.Minute)) {
					return names[r.IntN(5)] // the others have no requests at first
				}
				return names[r.IntN(10)]
			}}
			l.send(s, 8*time.Minute, func(since time.Duration) {
				state := s.state(t)
				if !state.Known() {
					require.False(t, known, "once known, it remains so")
					return
				}
				known = true
				require.InDelta(t, 50, state.Load[Requests], 15, "after %v", since)
				if since > 3*time.Minute {
					require.Len(t, state.Replicas, 10)
				}
			})
			require.True(t, known)
		})
	}
}

// Replicas with new names take over, as after a deployment, or join.
func TestPresent_ReplicasComeAndGo(t *testing.T) {
	for _, c := range []struct {
		situation string
		takes     float64
		after     []string
		over      float64
	}{
		{"others take over", 2, manyNames("new ", 4), 12},
		{"others take over long requests", 60, manyNames("new ", 4), 30},
		{"more join", 2, append(manyNames("old ", 4), manyNames("new ", 8)...), 12},
		{"more join for long requests", 60, append(manyNames("old ", 4), manyNames("new ", 8)...), 20},
	} {
		t.Run(c.situation, func(t *testing.T) {
			s := newService()
			s.toKnee(manyNames("old ", 4)...)
			r := rand.New(rand.NewPCG(1, 2))
			l := live{Rand: r, perSecond: 80, takes: c.takes, replica: anyOf(r, manyNames("old ", 4)...)}
			s = restarted(t, s)
			l.send(s, 15*time.Minute, func(time.Duration) {})
			deployed := s.now()
			others := anyOf(r, c.after...)
			before := l.replica
			l.replica = func(at time.Time) string {
				if at.Before(deployed) {
					return before(at)
				}
				return others(at)
			}
			l.send(s, 16*time.Minute, func(since time.Duration) {
				load := s.state(t).Load[Requests]
				require.Greater(t, load, 68.0, "after %v", since)
				require.Less(t, load, 80+c.over, "after %v", since)
			})
			require.Len(t, s.state(t).Replicas, len(c.after))
		})
	}
}

// Senders export batches: most of them every five seconds.
func TestPresent_ArrivesInBatches(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 5 * time.Second, 14 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			s := newService()
			r := rand.New(rand.NewPCG(1, 2))
			l := live{Rand: r, perSecond: 100, takes: 2, replica: anyOf(r, "a"), arrives: func(end time.Time) time.Time { return end.Truncate(every).Add(every) }}
			l.send(s, 10*time.Minute, func(since time.Duration) {
				if since > 3*time.Minute {
					require.InDelta(t, 100, s.state(t).Load[Requests], 6, "after %v", since)
				}
			})
		})
	}
}

// Clients of a replica export batches at different times, and some of them late.
func TestPresent_ArrivesOutOfOrder(t *testing.T) {
	s := newService()
	r := rand.New(rand.NewPCG(1, 2))
	l := live{Rand: r, perSecond: 100, takes: 2, replica: anyOf(r, "a"), arrives: func(end time.Time) time.Time { return end.Add(time.Duration(r.Float64() * float64(time.Minute))) }}
	l.send(s, 10*time.Minute, func(since time.Duration) {
		if since > 4*time.Minute {
			require.InDelta(t, 100, s.state(t).Load[Requests], 10, "after %v", since)
		}
	})
}

// The clock of a replica is two hours ahead or behind, and then right, or the other way round.
func TestPresent_SurvivesAClockThatIsSet(t *testing.T) {
	for _, by := range []time.Duration{-2 * time.Hour, -11 * time.Minute, 2 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			s := newService()
			s.start = s.start.Add(-max(0, by))
			s.serve(60, 150, Good, "a")
			s.start, s.lag = s.start.Add(by), max(0, -by)
			s.serve(80, 150, Good, "a")
			require.InDelta(t, 10, s.state(t).Load[Requests], 0.5)
		})
	}
}
