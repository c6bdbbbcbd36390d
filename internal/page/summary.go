// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// indicator is a quantity and its name in the API.
type indicator struct {
	name     string
	quantity numbers.ID
}

// indicators holds those of history.
var indicators = func() (all []indicator) {
	for _, q := range series.HistoryQuantities {
		all = append(all, indicator{q.APIName(), q})
	}
	return all
}()

// Summary describes a distribution.
type Summary struct {
	Count uint64 `json:"count"`
	Mean  number `json:"mean"`
	Min   number `json:"min"`
	Max   number `json:"max"`
	percentiles[number]
	CDF *CDF `json:"cdf,omitempty"`
}

// percentiles holds a value for each percentile, or a list of values over time.
type percentiles[T any] struct {
	P50 T `json:"p50"`
	P95 T `json:"p95"`
	P99 T `json:"p99"`
}

func percentilesOf(s *sketch.Sketch) percentiles[number] {
	q := [...]float64{0.50, 0.95, 0.99}
	s.Quantiles(q[:])
	return percentiles[number]{number(q[0]), number(q[1]), number(q[2])}
}

// summarize returns nil for an empty distribution.
func summarize(s *sketch.Sketch) *Summary {
	if s.Count() == 0 {
		return nil
	}
	return &Summary{
		Count: s.Count(), Mean: number(s.Sum() / float64(s.Count())), Min: number(s.Min()), Max: number(s.Max()),
		percentiles: percentilesOf(s),
	}
}

// CDF is a cumulative distribution.
type CDF struct {
	At    []number `json:"at"`
	Share []number `json:"share"`
}

// perPoint is the number of buckets that a point of a CDF covers: 16 points per doubling.
const perPoint = 4

func cdf(s *sketch.Sketch) *CDF {
	c := &CDF{At: []number{number(s.Min())}, Share: []number{0}}
	seen, count := s.Zeros(), float64(s.Count())
	c.Share[0] = number(float64(seen) / count)
	point := 0
	for index, n := range s.Buckets() {
		seen += n
		at, share := number(min(sketch.UpperBound(index), s.Max())), number(float64(seen)/count)
		if last := len(c.At) - 1; last > 0 && floorDiv(index, perPoint) == point {
			c.At[last], c.Share[last] = at, share
			continue
		}
		point = floorDiv(index, perPoint)
		c.At, c.Share = append(c.At, at), append(c.Share, share)
	}
	return c
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// summaries returns the summary of each indicator that has values.
func summaries(part *history.Part, withCDF bool) map[string]*Summary {
	all := map[string]*Summary{}
	for _, indicator := range indicators {
		values := part.Of(indicator.quantity)
		summary := summarize(values)
		if summary == nil {
			continue
		}
		if withCDF {
			summary.CDF = cdf(values)
		}
		all[indicator.name] = summary
	}
	return all
}
