package slo

import "time"

// Alert is a condition on burn rates that somebody should hear of. It holds while
// the burn rate is over the factor in both windows: the long one shows that it
// matters, the short one that it still goes on. The rules for Prometheus in
// examples/prometheus have the same conditions.
type Alert struct {
	Name   string
	Factor float64
	// Long and Short are positions in BurnWindows.
	Long, Short int
	// Page tells that it cannot wait for office hours.
	Page bool
}

// Alerts are those of the Site Reliability Workbook, chapter 5. The factors are for
// a budget of 30 days: 14.4 for an hour spends 2% of it, 6 for six hours 5%, 1 for
// three days 10%.
var Alerts = [3]Alert{
	{Name: "fast_burn", Factor: 14.4, Long: 2, Short: 0, Page: true},
	{Name: "slow_burn", Factor: 6, Long: 3, Short: 1, Page: true},
	{Name: "steady_burn", Factor: 1, Long: 4, Short: 3},
}

// maxBadShare is the share of bad requests that no page asks for more than. All
// requests bad burn at 1 / (1 - objective), which is only 10 for an objective of
// 0.9: the factor of 14.4 would never be reached.
const maxBadShare = 0.9

// LongWindow returns the length of the long window.
func (a *Alert) LongWindow() time.Duration { return BurnWindows[a.Long] }

// ShortWindow returns the length of the short window.
func (a *Alert) ShortWindow() time.Duration { return BurnWindows[a.Short] }

// Holds tells whether the condition is met. A window without requests meets none.
func (a *Alert) Holds(r *Recent, objective float64) bool {
	limit := a.Factor
	if a.Page {
		limit = min(limit, maxBadShare/(1-objective))
	}
	long, _ := r.Burn[a.Long].BurnRate(objective)
	short, _ := r.Burn[a.Short].BurnRate(objective)
	return long > limit && short > limit
}
