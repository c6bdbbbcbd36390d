// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// The lists of longer ranges are full of slower requests that are older than the range.
func TestRequests_EachRangeHasItsOwnList(t *testing.T) {
	start := time.Now().Truncate(time.Minute)
	page, _ := pageAt(start)
	clock := start
	page.Now = func() time.Time { // goes on between two calls
		clock = clock.Add(time.Microsecond)
		return clock
	}
	const perList = 100
	for _, sent := range []struct {
		age      time.Duration
		duration float64
		requests int
	}{{3 * time.Hour, 3, perList}, {30 * time.Minute, 2, perList}, {time.Minute, 1, 10}} {
		page.Slowest.Maintain(start.Add(-sent.age))
		for range sent.requests {
			r := &series.Contribution{Dimensions: []string{"llama"}, Arrival: start.Add(-sent.age)}
			r.SetValue(numbers.RequestDuration, sent.duration)
			page.Slowest.Add(r, nil, slowest.Facts{})
		}
	}
	page.Slowest.Maintain(start)
	for path, want := range map[string]map[float64]int{
		"requests?range=5m&limit=100":  {1: 10},
		"requests?range=1m30s&limit=9": {1: 9},
		"requests?range=1h&limit=100":  {2: 100},
		"requests?range=24h&limit=100": {3: 100},
	} {
		var answer struct {
			Requests []struct {
				Duration float64 `json:"request_duration"`
			}
		}
		get(t, page, path, &answer)
		got := map[float64]int{}
		for _, r := range answer.Requests {
			got[r.Duration]++
		}
		require.Equal(t, want, got, path)
	}
}
