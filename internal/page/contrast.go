// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "math"

// contrast compares the bad requests of a group with those of the rest. Slow requests count as bad ones do.
type contrast struct{ bad, of, restBad, restOf uint64 }

const (
	// enough is how many requests a group needs to stand out.
	enough = 20
	// explains is the least share of all bad requests that the group has beyond what it would have if it were as the rest.
	explains = 0.1
	// surprise is the least evidence that group and rest differ. Among a hundred equal groups, one is above it in a hundred looks:
	// the evidence of an equal group is above 15 with a probability of 1e-4 (chi-square, one degree of freedom).
	surprise = 15
)

// standsOut reports whether the group has an excess of bad requests that the rest does not have.
func (c contrast) standsOut() bool {
	if c.of < enough || c.restOf == 0 {
		return false
	}
	excess := float64(c.bad) - float64(c.of)*float64(c.restBad)/float64(c.restOf)
	return excess > 0 && excess >= explains*float64(c.bad+c.restBad) && c.evidence() >= surprise
}

// evidence is twice the log-likelihood ratio of two shares of bad requests against one for both (G-test of independence).
func (c contrast) evidence() (g float64) {
	of, restOf := float64(c.of), float64(c.restOf)
	all := of + restOf
	bad := float64(c.bad+c.restBad) / all
	for _, cell := range [...]struct{ seen, expected float64 }{
		{float64(c.bad), of * bad},
		{float64(c.of - c.bad), of * (1 - bad)},
		{float64(c.restBad), restOf * bad},
		{float64(c.restOf - c.restBad), restOf * (1 - bad)},
	} {
		if cell.seen > 0 {
			g += 2 * cell.seen * math.Log(cell.seen/cell.expected)
		}
	}
	return g
}

// shares returns the group's share of the bad requests, and of all.
func (c contrast) shares() (ofBad, ofAll number) {
	return number(c.bad) / number(c.bad+c.restBad), number(c.of) / number(c.of+c.restOf)
}
