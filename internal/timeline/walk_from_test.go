// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWalkFrom_EqualsWalkOverStoredForm(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		var line Timeline
		at := start + random.Int64N(2_000) - 1_000 // the first chunk may come before the start
		for range random.IntN(20) {
			line.Append(at, 1+uint32(random.IntN(2)), Channel(random.IntN(int(channels))))
			at += random.Int64N(int64(40*time.Millisecond)) - int64(time.Millisecond) // the clock may step back
		}
		stored, err := Decode(line.AppendBinary(nil, start))
		require.NoError(t, err)
		require.Equal(t, unpack(t, stored), unpack(t, line.WalkFrom(start)))
	}
}

func TestWalkFrom_RunsEqualThoseOfStoredForm(t *testing.T) {
	var line Timeline
	for i := range int64(300) {
		line.Append(start+123_456+i*7_333_499, 1, Content)
	}
	stored, err := Decode(line.AppendBinary(nil, start))
	require.NoError(t, err)
	walk := line.WalkFrom(start)
	var gaps, storedGaps [128]int64
	for {
		n, first, all := walk.NextRun(gaps[:])
		m, storedFirst, storedAll := stored.NextRun(storedGaps[:])
		require.Equal(t, m, n)
		require.Equal(t, storedFirst, first)
		require.Equal(t, storedAll, all)
		require.Equal(t, storedGaps, gaps)
		require.Equal(t, stored.Offset(), walk.Offset())
		if n == 0 {
			break
		}
	}
	require.NoError(t, walk.Err())
}

func TestWalkFrom_DoesNotAllocate(t *testing.T) {
	line := pack([]chunk{{time.Millisecond, 1, Content}, {2 * time.Millisecond, 1, Content}})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for walk := line.WalkFrom(start); walk.Next(); {
		}
	}))
}
