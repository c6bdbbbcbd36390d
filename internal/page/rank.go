// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Values of the parameter `rank`.
const (
	rankWorst = iota
	rankRequests
)

var rankNames = []string{"worst", "requests"}

// ranked are the quantities by which groups are slow. Requests that are not streamed have only the last.
var ranked = []numbers.ID{numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.RequestDuration}

// badness says how bad a group is: by how much it misses an objective, else how slow it is.
type badness struct {
	burn     float64 // of the error budget over the range, or 0 if it is at most 1
	slowness float64 // largest p95, divided by the median of the groups' p95, in steps of alike
}

// alike is the difference up to which groups are as slow as others, so that they do not change places all the time.
const alike = 0.05

// rank sorts groups: the worst first, or those with the most requests. Equal ones follow the order of requests.
func (p *Page) rank(groups []group, rank int) {
	bad := map[string]badness{}
	if rank == rankWorst {
		bad = p.badness(groups)
	}
	slices.SortFunc(groups, func(a, b group) int {
		x, y := bad[a.value], bad[b.value]
		return cmp.Or(cmp.Compare(y.burn, x.burn), cmp.Compare(y.slowness, x.slowness),
			cmp.Compare(b.requests(), a.requests()), cmp.Compare(a.value, b.value))
	})
}

func (p *Page) badness(groups []group) map[string]badness {
	all := map[string]badness{}
	for i := range groups {
		all[groups[i].value] = badness{burn: p.burn(&groups[i])}
	}
	for _, quantity := range ranked {
		var values []float64
		of := map[string]float64{}
		for i := range groups {
			g := &groups[i]
			if quantity == numbers.RequestDuration && all[g.value].slowness > 0 {
				continue // it depends on the length of the answer
			}
			if p95 := float64(percentilesOf(g.part().Of(quantity)).P95); p95 > 0 {
				of[g.value], values = p95, append(values, p95)
			}
		}
		slices.Sort(values)
		for value, p95 := range of {
			bad := all[value]
			bad.slowness = max(bad.slowness, math.Round(p95/values[len(values)/2]/alike)*alike)
			all[value] = bad
		}
	}
	return all
}

// burn returns how fast a group burns the error budget that it burns fastest, if that is faster than its
// objective allows, else 0. Verdicts have no outcome, so it is 0 for groups of an outcome.
func (p *Page) burn(g *group) (fastest float64) {
	if g.outcome >= 0 {
		return 0
	}
	for i := range p.Objectives {
		verdicts := g.sum.Verdicts(p.Objectives[i].SLO)
		if n := verdicts[slo.Good] + verdicts[slo.Bad]; n > 0 {
			fastest = max(fastest, float64(verdicts[slo.Bad])/float64(n)/(1-p.Objectives[i].Objective))
		}
	}
	if fastest <= 1 || math.IsNaN(fastest) {
		return 0
	}
	return fastest
}
