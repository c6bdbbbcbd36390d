// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// stepped returns a time as a clock shows it that was set by some hours: the monotonic clock, which time.Time has beside
// the wall clock, goes on. Package time has no way to make one.
func stepped(t *testing.T, at time.Time, hours int) time.Time {
	t.Helper()
	wall := (*uint64)(unsafe.Pointer(&at)) // seconds since 1885 from bit 30 on, if bit 63 says that there is a monotonic reading
	require.NotZero(t, *wall>>63)
	*wall += uint64(hours*3600) << 30
	return at
}

// A request counts by the clock that the page is asked by, also after a step of hours: when a computer wakes up, or its
// clock is set. What came before a step back lies in the future: it is in no range, and in no rate.
func TestClock_StepsOfHours(t *testing.T) {
	for name, hours := range map[string]int{"back": -6, "forward": 6} {
		t.Run(name, func(t *testing.T) {
			before := time.Now()
			page, engine := pageAt(before)
			record := func(at time.Time, requests int) {
				for range requests {
					request := &series.Contribution{Dimensions: []string{"llama"}, Arrival: at}
					request.SetValue(numbers.RequestDuration, 1)
					engine.Record(request)
				}
			}
			type now struct {
				Rate     *float64 `json:"requests_per_second"`
				Requests map[string]int
			}
			ask := func(at time.Time) (answer now) {
				page.Now = func() time.Time { return at }
				page.answers, page.folded = newAnswers(), time.Time{}
				get(t, page, "now", &answer)
				return answer
			}
			record(before, 300)
			require.Equal(t, 300, ask(before).Requests["success"])

			after := stepped(t, before.Add(10*time.Second), hours)
			require.Equal(t, before.Add(10*time.Second).Add(time.Duration(hours)*time.Hour).Unix(), after.Unix())
			require.Equal(t, 10*time.Second, after.Sub(before), "by the monotonic clock")
			require.Zero(t, ask(after).Requests["success"])

			record(after, 12)
			again := ask(after.Add(time.Minute))
			require.Equal(t, 12, again.Requests["success"])
			require.InDelta(t, 12.0/60, *again.Rate, 0.03, "over the last minute")
		})
	}
}
