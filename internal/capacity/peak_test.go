// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A load of 2 per second has a minute with 10. Exponential averages are 2 + 8(1 - exp(-minutes/time)) then.
func TestPeak_OfABurst(t *testing.T) {
	var p Peak
	add := func(minutes int, load float64) {
		for range minutes * int(time.Minute/Slot) {
			p.Add(p.averages.start.Add(p.averages.seen()), Load{load, 100 * load, 0})
		}
	}
	p.Add(origin, Load{2, 200, 0})
	add(9, 2)
	require.Zero(t, p.Sustained, "the load of the ten minutes is unknown")
	require.InDelta(t, 2, p.Minute[Requests], 1e-9)
	add(60, 2)
	require.InDelta(t, 2, p.Sustained[Requests], 1e-9)
	add(1, 10)
	add(60, 2)
	require.InDelta(t, 2+8*(1-math.Exp(-1)), p.Minute[Requests], 0.01)
	require.InDelta(t, 2+8*(1-math.Exp(-0.1)), p.Sustained[Requests], 0.01)
	require.InDelta(t, 100*p.Sustained[Requests], p.Sustained[OutputTokens], 1e-6)
	require.Zero(t, p.Sustained[PromptTokens])
}
