package series

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Snapshot is a series at one moment. It is a copy, and valid only while it is
// visited.
type Snapshot struct {
	// Key stands for the series' identity: no two have the same.
	Key string
	Identity
	// Start is when the series' first request arrived.
	Start time.Time
	// Outcomes holds what is kept by outcome. One without requests is empty.
	Outcomes [outcomes]OutcomeSnapshot
	// SLOs holds what is kept for each service level objective, and for all
	// together, in the order of their names.
	SLOs []SLOSnapshot

	counts [counts]optional
}

// Count returns the sum over all requests, if any reported it.
func (s *Snapshot) Count(c Count) (n float64, reported bool) {
	return s.counts[c].value, s.counts[c].present
}

// SLOSnapshot is what a series keeps for one service level objective.
type SLOSnapshot struct {
	Name string
	// Start is when the first request that it applies to arrived.
	Start time.Time
	// Requests counts requests by Verdict.
	Requests [verdictKinds]uint64
	// Objective is the share of requests that are to be good. It is zero without
	// an objective, and Recent is then empty.
	Objective float64
	Recent    slo.Recent
}

// OutcomeSnapshot is what a series keeps for one outcome.
type OutcomeSnapshot struct {
	// Start is when the first request of this outcome arrived.
	Start         time.Time
	Requests      uint64
	Distributions [quantities]DistributionSnapshot
}

// DistributionSnapshot is one quantity of one series and outcome. Its sketch is
// empty where no request had a value.
type DistributionSnapshot struct {
	// Sketch holds all values since the series began.
	Sketch sketch.Sketch
	// Classic counts the values in each classic bucket, and in the one after the
	// last bound. The counts are not cumulative.
	Classic []uint64
	// Exemplars holds one for each classic bucket, unset where there is none;
	// or nothing at all.
	Exemplars []Exemplar
	// Quantiles holds those of each window that is not empty.
	Quantiles []Quantile
}

// Quantile is a quantile over a window. Window and Quantile are positions in the
// engine's configuration.
type Quantile struct {
	Window, Quantile int
	Value            float64
}
