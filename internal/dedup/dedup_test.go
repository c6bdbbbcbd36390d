// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package dedup

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// number returns the n-th ID.
func number(n int) *ID {
	id := &ID{Vantage: "server"}
	binary.BigEndian.PutUint64(id.TraceID[:], uint64(n)+1)
	binary.BigEndian.PutUint64(id.SpanID[:], uint64(n)+1)
	return id
}

var began = time.Unix(1_000_000, 0)

func newSet(horizon time.Duration, limit int) *Set {
	return NewSet(Config{Horizon: horizon, MaxSpans: limit}, began)
}

// bytes returns the memory of the tables.
func (s *Set) bytes() int { return 8 * (len(s.newer.slots) + len(s.older.slots)) }

func TestAdd_RecognisesARequestByAllOfItsIDs(t *testing.T) {
	s := newSet(time.Minute, 100)
	id := *number(1)
	require.True(t, s.Add(&id, began))
	require.False(t, s.Add(&id, began))
	for name, change := range map[string]func(*ID){
		"trace ID": func(id *ID) { id.TraceID[15]++ },
		"span ID":  func(id *ID) { id.SpanID[0]++ },
		"vantage":  func(id *ID) { id.Vantage = "client" },
		"none":     func(id *ID) { id.Vantage = "" },
		"long":     func(id *ID) { id.Vantage = strings.Repeat("x", 1000) },
	} {
		other := id
		change(&other)
		require.True(t, s.Add(&other, began), name)
		require.False(t, s.Add(&other, began), name)
	}
}

func TestAdd_NeverRecognisesInvalidIDs(t *testing.T) {
	s := newSet(time.Minute, 100)
	for _, id := range []*ID{{}, {TraceID: [16]byte{1}}, {SpanID: [8]byte{1}}} {
		for range 3 {
			require.True(t, s.Add(id, began))
		}
	}
	require.Zero(t, s.bytes())
}

func TestAdd_RemembersForAtLeastTheHorizon(t *testing.T) {
	s := newSet(time.Minute, 1000)
	for n := range 60 {
		require.True(t, s.Add(number(n), began.Add(time.Duration(n)*time.Second)))
	}
	require.False(t, s.Add(number(59), began.Add(118*time.Second)))
	require.True(t, s.Add(number(58), began.Add(179*time.Second)), "two horizons later")
	require.Zero(t, s.Evicted(), "nothing went before the horizon")
}

func TestAdd_ForgetsAfterTwoHorizonsWithoutRequests(t *testing.T) {
	s := newSet(time.Minute, 1000)
	require.True(t, s.Add(number(1), began))
	require.True(t, s.Add(number(1), began.Add(2*time.Minute)))
}

// A batch that is refused for hours counts once.
func TestAdd_RemembersARequestThatKeepsComing(t *testing.T) {
	s := newSet(time.Minute, 1000)
	require.True(t, s.Add(number(1), began))
	for n := range 100 {
		require.False(t, s.Add(number(1), began.Add(time.Duration(n)*50*time.Second)))
	}
}

func TestAdd_ForgetsEarlyBeyondTheLimit(t *testing.T) {
	s := newSet(time.Hour, 1000)
	for n := range 1000 {
		require.True(t, s.Add(number(n), began))
	}
	require.Zero(t, s.Evicted())
	for n := range 1000 {
		require.False(t, s.Add(number(n), began), "the limit holds")
		require.LessOrEqual(t, s.newer.used, 500, "half of the limit")
	}
	for n := range 1000 {
		require.True(t, s.Add(number(1000+n), began))
	}
	require.EqualValues(t, 1000, s.Evicted())
	for n := range 500 {
		require.False(t, s.Add(number(1500+n), began), "the latest half is remembered")
	}
	require.True(t, s.Add(number(1), began))
}

func TestAdd_OneOfManyGoroutinesSucceeds(t *testing.T) {
	const requests, presented = 5000, 8
	s := newSet(time.Minute, 2*requests)
	var counted atomic.Int64
	var group sync.WaitGroup
	for range presented {
		group.Go(func() {
			for n := range requests {
				if s.Add(number(n), began) {
					counted.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.EqualValues(t, requests, counted.Load())
}

func TestRemove_Forgets(t *testing.T) {
	s := newSet(time.Minute, 1000)
	s.Remove(number(1))
	require.True(t, s.Add(number(1), began))
	s.Remove(number(1))
	require.True(t, s.Add(number(1), began))
	require.True(t, s.Add(number(2), began.Add(time.Minute)), "number 1 is in the older generation")
	s.Remove(number(1))
	s.Remove(&ID{})
	require.True(t, s.Add(number(1), began.Add(time.Minute)))
	require.False(t, s.Add(number(2), began.Add(time.Minute)))
}

// The set must agree with a map, whatever is added and removed.
func TestSet_AgreesWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s, want := newSet(time.Hour, 100_000), map[int]bool{}
	for range 200_000 {
		n := random.IntN(3000)
		if random.IntN(3) == 0 {
			s.Remove(number(n))
			delete(want, n)
			continue
		}
		require.Equal(t, !want[n], s.Add(number(n), began))
		want[n] = true
	}
	require.Equal(t, len(want), s.newer.used+s.older.used)
}

func TestSet_MemoryIsBoundedAndGrowsWithUse(t *testing.T) {
	s := NewSet(NewDefaultConfig(), began)
	require.Zero(t, s.bytes())
	for n := range 100 {
		s.Add(number(n), began)
	}
	require.Equal(t, 2048, s.bytes())
	most := 0
	for n := range 1_490_000 {
		s.Add(number(n), began)
		most = max(most, s.bytes())
	}
	require.Equal(t, 16<<20, most)

	s.Expire(began.Add(10 * time.Minute))
	require.Equal(t, 16<<20, s.bytes(), "a new generation expects as many requests")
	s.Add(number(1), began.Add(10*time.Minute))
	s.Expire(began.Add(20 * time.Minute))
	require.LessOrEqual(t, s.bytes(), 8<<20)
	s.Expire(began.Add(30 * time.Minute))
	require.LessOrEqual(t, s.bytes(), 2048)
	s.Add(number(1), began.Add(40*time.Minute))
	s.Expire(began.Add(time.Hour))
	require.LessOrEqual(t, s.bytes(), 2048, "a quiet set has no memory")
}

func TestSet_NilRecognisesNothing(t *testing.T) {
	s := NewSet(Config{}, began)
	require.Nil(t, s)
	require.True(t, s.Add(number(1), began))
	require.True(t, s.Add(number(1), began))
	s.Remove(number(1))
	s.Expire(began)
	require.Zero(t, s.Evicted())
}

func TestConfig_Problems(t *testing.T) {
	defaults := NewDefaultConfig()
	require.Empty(t, defaults.Problems())
	require.Empty(t, (&Config{MaxSpans: 2}).Problems(), "a horizon of 0 turns it off")
	for want, c := range map[string]Config{
		"`deduplication::horizon` is 10ns; use 1s to 24h, such as 10m, or 0 to count repeated requests again":                                                   {Horizon: 10, MaxSpans: 2},
		"`deduplication::horizon` is -1s; use 1s to 24h, such as 10m, or 0 to count repeated requests again":                                                    {Horizon: -time.Second, MaxSpans: 2},
		"`deduplication::horizon` is 25h0m0s; use 1s to 24h, such as 10m, or 0 to count repeated requests again":                                                {Horizon: 25 * time.Hour, MaxSpans: 2},
		"`deduplication::max_spans` is 0; use 2 to 100000000, each taking about 16 bytes; to turn deduplication off, set `deduplication::horizon` to 0":         {Horizon: time.Minute},
		"`deduplication::max_spans` is 100000001; use 2 to 100000000, each taking about 16 bytes; to turn deduplication off, set `deduplication::horizon` to 0": {Horizon: time.Minute, MaxSpans: 100_000_001},
	} {
		errs := c.Problems()
		require.Len(t, errs, 1)
		require.EqualError(t, errs[0], want)
	}
}

func TestConfig_RejectsUnknownKeys(t *testing.T) {
	c := NewDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"horizon": "5m"}).Unmarshal(&c))
	require.Equal(t, Config{Horizon: 5 * time.Minute, MaxSpans: 1_000_000}, c)
	require.ErrorContains(t, confmap.NewFromStringMap(map[string]any{"horizn": "5m"}).Unmarshal(&c), "horizn")
}

func TestAdd_DoesNotAllocate(t *testing.T) {
	s, n := newSet(time.Hour, 100_000), 0
	for range 40_000 {
		s.Add(number(n), began)
		n++
	}
	id := *number(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		n++
		binary.BigEndian.PutUint64(id.TraceID[:], uint64(n))
		s.Add(&id, began)
	}))
}

func benchmarkAdd(b *testing.B, held int, next func(i int) int) {
	s := NewSet(NewDefaultConfig(), began)
	for n := range held {
		s.Add(number(n), began)
	}
	id := *number(0)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		n := uint64(next(i)) + 1
		binary.BigEndian.PutUint64(id.TraceID[:], n)
		binary.BigEndian.PutUint64(id.SpanID[:], n)
		s.Add(&id, began)
	}
}

// BenchmarkAdd adds new requests to a set that is always full, growth and rotation
// included.
func BenchmarkAdd(b *testing.B) {
	benchmarkAdd(b, 1_000_000, func(i int) int { return 1_000_000 + i })
}

// BenchmarkAddDuplicate presents requests that the set holds.
func BenchmarkAddDuplicate(b *testing.B) {
	benchmarkAdd(b, 400_000, func(i int) int { return i * 7919 % 400_000 })
}

// BenchmarkAddParallel adds new requests from all CPUs.
func BenchmarkAddParallel(b *testing.B) {
	s := NewSet(NewDefaultConfig(), began)
	var workers atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		n := int(workers.Add(1)) * 100_000_000
		for ; p.Next(); n++ {
			s.Add(number(n), began)
		}
	})
}

// BenchmarkAddFew presents requests to a set that fits into the CPU's caches.
func BenchmarkAddFew(b *testing.B) {
	benchmarkAdd(b, 1000, func(i int) int { return i * 7919 % 1000 })
}

func BenchmarkHash(b *testing.B) {
	s := NewSet(NewDefaultConfig(), began)
	id := *number(0)
	for b.Loop() {
		s.hash(&id)
	}
}

func TestAddAll_EqualsAdd(t *testing.T) {
	now := time.Now()
	one, all := NewSet(NewDefaultConfig(), now), NewSet(NewDefaultConfig(), now)
	all.seed = one.seed
	ids := []ID{{TraceID: [16]byte{1}, SpanID: [8]byte{1}}, {TraceID: [16]byte{2}, SpanID: [8]byte{1}}, {TraceID: [16]byte{1}, SpanID: [8]byte{1}}, {}, {}}
	var want []bool
	var keys []Key
	for i := range ids {
		want = append(want, one.Add(&ids[i], now))
		keys = append(keys, all.KeyOf(&ids[i]))
	}
	require.Equal(t, []bool{true, true, false, true, true}, want)
	require.Equal(t, want, all.AddAll(keys, now, nil))
	require.Equal(t, []bool{true, true, true, true, true}, (*Set)(nil).AddAll(keys, now, nil))
}

// Load would read other slots than Add, which shows in no result.
func TestPlace_HasTheSlotOfEveryVantage(t *testing.T) {
	s := NewSet(Config{Horizon: time.Minute, MaxSpans: maxMaxSpans}, began)
	slots := slotsFor(s.limit)
	for n := range 100 {
		id := *number(n)
		for _, id.Vantage = range []string{"", "client", "engine"} {
			require.Zero(t, (s.Place(id.TraceID, id.SpanID)^s.KeyOf(&id))%Key(slots))
		}
	}
}

func TestLoad_AddsNothing(t *testing.T) {
	s := NewSet(NewDefaultConfig(), began)
	require.True(t, s.Add(number(0), began))
	s.Load([]Key{s.KeyOf(number(1))})
	require.True(t, s.Add(number(1), began))
}

func TestKeyOfSeed_RecognisesASeedThatComesAgain(t *testing.T) {
	s := NewSet(NewDefaultConfig(), time.Now())
	require.Equal(t, []bool{true, true, false}, s.AddAll([]Key{s.KeyOfSeed([]byte("a")), s.KeyOfSeed([]byte("b")), s.KeyOfSeed([]byte("a"))}, time.Now(), nil))
	require.Equal(t, None, (*Set)(nil).KeyOfSeed([]byte("a")))
}
