// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	second = int64(time.Second)
	minute = int64(time.Minute)
	began  = 1_700_000_000 * second // when the tables of these tests are made
)

var settings = Settings{Requests: 3, Duration: 2 * time.Minute, Idle: 15 * time.Minute}

// newTable returns a table at a time that tests set.
func newTable(limit int) (t *Table, now *int64) {
	now = new(int64)
	*now = began
	return NewTable(settings, limit, func() int64 { return *now }), now
}

// delivered is a request of a random trace, in the order of delivery.
type delivered struct {
	replica  uint64
	request  request
	at       int64
	expected bool
}

// recount decides on each request by all that were delivered so far: it sorts them, and looks for the last idle time before.
func recount(all []delivered) {
	for i := range all {
		var known []request
		for _, d := range all[:i+1] {
			if d.replica == all[i].replica && !slices.Contains(known, d.request) {
				known = append(known, d.request)
			}
		}
		slices.SortFunc(known, func(a, b request) int {
			if a.start != b.start {
				return int(max(-1, min(1, a.start-b.start)))
			}
			return int(max(-1, min(1, a.end-b.end)))
		})
		place, since, until := 0, known[0].start, known[0].end
		for j, q := range known {
			if j > 0 && q.start-until > 15*minute {
				place, since = 0, q.start
			}
			until = max(until, q.end)
			if q == all[i].request {
				break
			}
			place++
		}
		start := all[i].request.start
		all[i].expected = since-began >= 15*minute && (place < 3 || start-since < 2*minute)
	}
}

// trace returns requests of six replicas over some hours, with pauses about as long as the idle time. They are delivered
// after their end, at times out of order, late, or twice.
func trace(random *rand.Rand) (all []delivered) {
	for replica := range uint64(6) {
		at := began - 20*minute + random.Int64N(60*minute)
		for range 40 + random.IntN(60) {
			switch random.IntN(12) {
			case 0:
				at += 13*minute + random.Int64N(6*minute)
			case 1:
				at += minute
			default:
				at += random.Int64N(30) * second
			}
			q := request{at, at + random.Int64N(4*minute)}
			d := delivered{replica: replica, request: q, at: q.end}
			if random.IntN(4) == 0 {
				d.at += random.Int64N(10 * minute)
			}
			all = append(all, d)
			if random.IntN(20) == 0 {
				all = append(all, delivered{replica: replica, request: q, at: d.at + minute})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b delivered) int { return int(max(-1, min(1, a.at-b.at))) })
	return all
}

func TestCold_EqualsARecountOfRandomTraces(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	count := map[bool]int{}
	for range 60 {
		all := trace(random)
		recount(all)
		table, now := newTable(100)
		for i, d := range all {
			*now = d.at
			require.Equal(t, d.expected, table.Cold(d.replica, d.request.start, d.request.end), "%d: %+v", i, d)
			count[d.expected]++
		}
		require.Zero(t, table.Evicted())
	}
	require.Greater(t, count[true], 2000)
	require.Greater(t, count[false], 2000)
}

// at notes a request of ten seconds.
func at(table *Table, replica uint64, start int64) bool {
	return table.Cold(replica, start, start+10*second)
}

func TestCold_ALateRequestOfWarmTimeIsNot(t *testing.T) {
	table, _ := newTable(10)
	for s := began + 20*minute; s < began+30*minute; s += minute {
		at(table, 1, s)
	}
	again := began + 60*minute
	require.True(t, at(table, 1, again))
	require.False(t, at(table, 1, began+25*minute), "it started before the idle time")
	require.True(t, at(table, 1, again+second))

	for range 3 {
		at(table, 2, began+20*minute)
		at(table, 2, began+21*minute)
	}
	require.True(t, at(table, 2, again))
	require.True(t, table.Cold(2, began+20*minute+second, again-minute))
	require.False(t, at(table, 2, again+second), "that one lasted until a minute before: the replica was not idle")
}

func TestCold_AReplicaSeenAtTheBeginOfTheCollectorIsNot(t *testing.T) {
	table, _ := newTable(10)
	require.False(t, at(table, 1, began+15*minute-1))
	require.True(t, at(table, 2, began+15*minute))
	require.False(t, at(table, 3, began-24*60*minute), "a trace of yesterday")
	require.True(t, at(table, 1, began+31*minute), "idle since")
}

func TestCold_IdleCountsFromTheEndOfTheLastRequest(t *testing.T) {
	table, _ := newTable(10)
	first := began + 20*minute
	require.True(t, table.Cold(1, first, first+10*minute))
	require.True(t, at(table, 1, first+24*minute), "the second request")
	require.True(t, at(table, 1, first+25*minute), "the third")
	require.False(t, at(table, 1, first+26*minute), "the fourth")
	require.True(t, at(table, 2, first))
	require.True(t, at(table, 2, first+10*second+15*minute), "the second request")
	require.True(t, at(table, 2, first+20*second+30*minute), "the third")
	require.False(t, at(table, 2, first+30*second+45*minute), "exactly the idle time: the fourth")
	require.True(t, at(table, 2, first+40*second+60*minute+1), "more than the idle time")
}

// At the limit, the replica without a request for longest goes. If it may not have been idle, what follows is unknown, not
// cold.
func TestCold_AtTheLimit(t *testing.T) {
	table, now := newTable(3)
	first := began + 20*minute
	for replica := range uint64(3) {
		*now = first + int64(replica)*minute
		require.True(t, at(table, replica, *now))
	}
	*now = first + 5*minute
	at(table, 0, *now) // now 1 waits for longest
	require.False(t, at(table, 3, *now), "unknown: it could have been evicted a minute ago")
	require.EqualValues(t, 1, table.Evicted())
	require.Len(t, table.replicas, 3)
	for s := int64(0); s < 10*minute; s += minute {
		require.False(t, at(table, 1, first+6*minute+s), "it was evicted though it is warm")
	}
	require.Greater(t, table.Evicted(), int64(1))

	evicted := table.Evicted()
	*now = first + 120*minute
	for replica := uint64(100); replica < 103; replica++ {
		require.True(t, at(table, replica, *now), "all in the table were idle: nothing is lost")
	}
	require.Equal(t, evicted, table.Evicted())
	for replica := uint64(1000); replica < 11_000; replica++ {
		at(table, replica, *now)
	}
	require.Len(t, table.replicas, 3)
}

// A sender's clock that is years ahead does not end cold starts for others.
func TestCold_AnEvictedReplicaFromTheFuture(t *testing.T) {
	table, now := newTable(1)
	*now = began + 20*minute
	at(table, 1, began+1_000_000*minute)
	require.False(t, at(table, 2, *now))
	*now += 40 * minute
	require.True(t, at(table, 3, *now))
}

func TestCold_TimesThatNoClockShows(t *testing.T) {
	table, _ := newTable(10)
	for _, q := range []request{{0, 0}, {-1, 5}, {1, 1}, {began + 20*minute, 1<<63 - 1}, {1<<63 - 1, 1}} {
		require.False(t, table.Cold(1, q.start, q.end))
	}
	require.Empty(t, table.replicas)
	require.True(t, table.Cold(1, began+20*minute, began), "an end before the start")
}

func TestCold_AllocatesNothingForAWarmReplica(t *testing.T) {
	table, _ := newTable(10)
	next := began + 20*minute
	request := func() {
		for replica := range uint64(5) {
			at(table, replica, next)
		}
		next += second
	}
	for range 10 {
		request()
	}
	require.Zero(t, testing.AllocsPerRun(100, request))
}

func BenchmarkCold(b *testing.B) {
	table, _ := newTable(MaxReplicas)
	for i := range b.N {
		at(table, uint64(i%100), began+int64(i)*second/1000)
	}
}
