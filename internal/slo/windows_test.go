// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

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

func TestWindows_BackwardClockLosesNothing(t *testing.T) {
	h := NewWindows(time.Hour)
	h.Add(10*time.Hour, Counts{Good: 1})
	h.Add(5*time.Hour, Counts{Bad: 1})
	h.Add(-5*time.Hour, Counts{Bad: 1})
	all := Counts{Good: 1, Bad: 2}
	require.Equal(t, Recent{[5]Counts{all, all, all, all, all}, all}, h.Recent(-time.Hour))
	require.Equal(t, all, h.Recent(10*time.Hour + 4*time.Minute).Burn[0])
}

// Random requests at random times are compared with a list of them. Each window holds
// exactly the requests of its slots: at least those of 59/60 of its length, at most
// those of its whole length.
func TestWindows_EqualAListOfRequests(t *testing.T) {
	type request struct {
		at   time.Duration
		good bool
	}
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			length := time.Hour + time.Duration(random.Int64N(int64(month)))
			// Most steps are short; some are longer than a window.
			longest := []time.Duration{time.Second, time.Minute, time.Hour, 100 * time.Hour}
			h := NewWindows(length)
			var all []request
			now := time.Duration(0)
			for range 2000 {
				now += time.Duration(random.Int64N(int64(longest[random.IntN(len(longest)-random.IntN(2))])))
				all = append(all, request{now, random.IntN(3) > 0})
				h.Add(now, one(all[len(all)-1].good))
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

// The READMEs of token_sli give the memory of an objective.
func TestWindows_SizeInMemory(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Windows{}), uintptr(5900))
}
