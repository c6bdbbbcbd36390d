// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAlert_FiresWhenBothWindowsExceedTheFactor(t *testing.T) {
	const objective = 0.99 // a budget of 1%
	percent := func(bad uint64) Counts { return Counts{Good: 1000 - 10*bad, Bad: 10 * bad} }
	at14, at15, at6, at7, at1, at2 := percent(14), percent(15), percent(6), percent(7), percent(1), percent(2)
	all, most := percent(100), percent(91)
	tests := map[string]struct {
		burn      [len(BurnWindows)]Counts // 5m, 30m, 1h, 6h, 3d
		objective float64
		want      [len(Alerts)]bool
	}{
		"no requests":                {[5]Counts{}, objective, [4]bool{}},
		"burn rates of 1":            {[5]Counts{at1, at1, at1, at1, at1}, objective, [4]bool{}},
		"14 times, limit 14.4":       {[5]Counts{at14, at1, at14, at1, at1}, objective, [4]bool{}},
		"15 times, limit 14.4":       {[5]Counts{at15, at1, at15, at1, at1}, objective, [4]bool{false, true}},
		"15 times, but not now":      {[5]Counts{{}, at1, at15, at1, at1}, objective, [4]bool{}},
		"15 times, only for minutes": {[5]Counts{at15, at15, at14, at1, at1}, objective, [4]bool{}},
		"6 times, limit 6":           {[5]Counts{at1, at6, at1, at6, at1}, objective, [4]bool{}},
		"7 times, limit 6":           {[5]Counts{at1, at7, at1, at7, at1}, objective, [4]bool{false, false, true}},
		"7 times, hours ago":         {[5]Counts{at1, at6, at1, at7, at1}, objective, [4]bool{}},
		"2 times, for days":          {[5]Counts{at1, at1, at1, at2, at2}, objective, [4]bool{false, false, false, true}},
		"2 times, a day ago":         {[5]Counts{at1, at1, at1, at1, at2}, objective, [4]bool{}},
		"all requests bad":           {[5]Counts{all, all, all, all, all}, objective, [4]bool{true, true, true, true}},
		"91% bad, objective 0.9":     {[5]Counts{most, most, most, most, most}, 0.9, [4]bool{true, true, true, true}},
		"50% bad, objective 0.9":     {[5]Counts{percent(50), percent(50), percent(50), percent(50), percent(50)}, 0.9, [4]bool{false, false, false, true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range Alerts {
				require.Equal(t, test.want[i], Alerts[i].Fires(&Budget{&Objective{SLO: "tpot", Objective: test.objective}, Recent{Burn: test.burn}}), Alerts[i].Name)
			}
		})
	}
	require.Equal(t, NearTotalBreach, Alerts[0].Name)
	require.Equal(t, [2]time.Duration{time.Hour, 5 * time.Minute}, [2]time.Duration{Alerts[1].LongWindow(), Alerts[1].ShortWindow()})
	require.Equal(t, [2]time.Duration{6 * time.Hour, 30 * time.Minute}, [2]time.Duration{Alerts[2].LongWindow(), Alerts[2].ShortWindow()})
	require.Equal(t, [2]time.Duration{72 * time.Hour, 6 * time.Hour}, [2]time.Duration{Alerts[3].LongWindow(), Alerts[3].ShortWindow()})
}

// The limit is 1 - objective / 2, for at least 20 requests.
func TestAlert_NearTotalBreach(t *testing.T) {
	for name, test := range map[string]struct {
		slo       string
		objective float64
		recent    Counts
		want      bool
	}{
		"55% of 0.9":    {"tpot", 0.9, Counts{Good: 45, Bad: 55}, false},
		"56% of 0.9":    {"tpot", 0.9, Counts{Good: 44, Bad: 56}, true},
		"52.5% of 0.95": {"tpot", 0.95, Counts{Good: 475, Bad: 525}, false},
		"52.6% of 0.95": {"tpot", 0.95, Counts{Good: 474, Bad: 526}, true},
		"75% of 0.5":    {"tpot", 0.5, Counts{Good: 25, Bad: 75}, false},
		"76% of 0.5":    {"tpot", 0.5, Counts{Good: 24, Bad: 76}, true},
		"20 requests":   {"tpot", 0.9, Counts{Bad: 20}, true},
		"19 requests":   {"tpot", 0.9, Counts{Bad: 19}, false},
		"all":           {"all", 0.9, Counts{Bad: 100}, false},
	} {
		t.Run(name, func(t *testing.T) {
			recent := Recent{Burn: [len(BurnWindows)]Counts{test.recent}}
			require.Equal(t, test.want, Alerts[0].Fires(&Budget{&Objective{SLO: test.slo, Objective: test.objective}, recent}))
		})
	}
}
