// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A gap of exactly a deadline or threshold must not change with the nanoseconds of
// the times around it.
func TestNextRun_GapsStayExactMultiples(t *testing.T) {
	for nanos := range int64(2_000) {
		var line Timeline
		for i := range int64(4) {
			line.Append(start+nanos+i*int64(50*time.Millisecond), 1, Content)
		}
		walk := line.Walk()
		var gaps [4]int64
		n, _, _ := walk.NextRun(gaps[:])
		require.Equal(t, 4, n)
		require.Equal(t, []int64{0, 50_000, 50_000, 50_000}, gaps[:])
	}
}

func TestNextRun_EqualsNext(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		var line Timeline
		at := start + random.Int64N(1000)
		for range random.IntN(100) {
			at += random.Int64N(1<<random.IntN(50)) - random.Int64N(1000)
			line.Append(at, 1+uint32(random.IntN(5)/4), Channel(random.IntN(5)/4))
		}
		requireRunsAgree(t, line.AppendBinary(nil, start))
	}
}

// requireRunsAgree walks a stored timeline by chunks and by runs, and compares.
func requireRunsAgree(t *testing.T, stored []byte) {
	t.Helper()
	walk, err := Decode(stored)
	require.NoError(t, err)
	runs := walk
	var gaps [7]int64
	for n, first, all := runs.NextRun(gaps[:]); n > 0; n, first, all = runs.NextRun(gaps[:]) {
		bits := int64(0)
		for i, gap := range gaps[:n] {
			before := walk.grid
			require.True(t, walk.Next())
			require.Equal(t, (walk.grid-before)/1000, gap)
			bits |= gap
			if i == 0 {
				require.Equal(t, walk.Offset(), first)
			}
			require.Equal(t, walk.Tokens(), runs.Tokens())
			require.Equal(t, walk.Channel(), runs.Channel())
		}
		require.Equal(t, bits, all)
		require.Equal(t, walk, runs)
	}
	require.False(t, walk.Next())
	require.Equal(t, walk.Err(), runs.Err())
}

func TestNextRun_ReadsGapsOfAllWidthsAndSigns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var packed []byte
		want := []int64{0}
		for range random.IntN(40) {
			want = append(want, random.Int64N([]int64{60, 8_000, 30_000, 30_000, 30_000, 30_000, 3_000_000, 1 << (10 + random.IntN(40))}[random.IntN(8)]))
			if random.IntN(10) == 0 {
				want[len(want)-1] *= -1
			}
		}
		ticks := int64(0)
		for _, gap := range want[1:] {
			packed = binary.AppendVarint(packed, gap)
			ticks += gap
		}
		var got []int64
		var run [16]int64
		var line Timeline
		line.AppendGaps(start, packed, len(want)-1, ticks, Content)
		walk := line.Walk()
		for n, _, all := walk.NextRun(run[:]); n > 0; n, _, all = walk.NextRun(run[:]) {
			or := int64(0)
			for _, gap := range run[:n] {
				or |= gap
			}
			require.Equal(t, or, all)
			got = append(got, run[:n]...)
		}
		require.NoError(t, walk.Err())
		require.Equal(t, want, got)
	}
}
