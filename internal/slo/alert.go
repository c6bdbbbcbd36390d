// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Alert is a multi-window burn-rate alert. It fires while the burn rate exceeds the
// factor in both windows: the long window shows that the burn matters, the short one
// that it continues. examples/prometheus has the same alerts as Prometheus rules.
type Alert struct {
	Name string
	// Factor is 0 for the near total breach, which has a limit of its own.
	Factor float64
	// Long and Short index BurnWindows.
	Long, Short int
	// Page separates alerts that page from those that open a ticket.
	Page bool
	// Keep is the time for which the alert stays active after its condition ended.
	Keep time.Duration
}

// The near total breach pages minutes after most requests are bad, when an hour's burn rate is still low. While
// it is active, no FastBurn of the same SLO starts. The burn rate over 5 minutes, and so FastBurn, can stay over
// its limit for longer than the near total breach: Keep covers that time.
const (
	NearTotalBreach = "near_total_breach"
	FastBurn        = "fast_burn"
	minRequests     = 20 // of a near total breach
)

// Alerts begin with NearTotalBreach. The others are those of chapter 5 of the Site Reliability Workbook. The factors fit a
// 30-day budget: 14.4 for one hour spends 2% of it, 6 for six hours 5%, 1 for three
// days 10%.
var Alerts = [4]Alert{
	{Name: NearTotalBreach, Long: 0, Short: 0, Page: true, Keep: 5 * time.Minute},
	{Name: FastBurn, Factor: 14.4, Long: 2, Short: 0, Page: true},
	{Name: "slow_burn", Factor: 6, Long: 3, Short: 1, Page: true},
	{Name: "steady_burn", Factor: 1, Long: 4, Short: 3},
}

// maxBadShare caps the share of bad requests that a page requires. If every request
// is bad, the burn rate is 1 / (1 - objective): only 10 for an objective of 0.9, so
// the factor of 14.4 would be out of reach.
const maxBadShare = 0.9

// LongWindow returns the length of the long window.
func (a *Alert) LongWindow() time.Duration { return BurnWindows[a.Long] }

// ShortWindow returns the length of the short window.
func (a *Alert) ShortWindow() time.Duration { return BurnWindows[a.Short] }

// Fires reports whether the burn rate of a budget exceeds the factor in both windows. A window
// without requests has a burn rate of 0.
func (a *Alert) Fires(b *Budget) bool {
	r, objective := &b.Recent, b.Objective.Objective
	if a.Name == NearTotalBreach {
		return b.SLO != names.SLOAll && isNearTotal(r.Burn[a.Long], objective)
	}
	limit := a.Factor
	if a.Page {
		limit = min(limit, maxBadShare/(1-objective))
	}
	long, _ := r.Burn[a.Long].BurnRate(objective)
	short, _ := r.Burn[a.Short].BurnRate(objective)
	return long > limit && short > limit
}

// isNearTotal reports whether the share of bad requests is above 1 - objective / 2.
func isNearTotal(n Counts, objective float64) bool {
	requests := float64(n.Good + n.Bad)
	return requests >= minRequests && float64(n.Bad) > (1-objective/2)*requests
}
