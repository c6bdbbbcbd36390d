// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import "math"

// Evidence is what independent slots say of an objective.
//
// Shares of bad requests are between 0 and 1. For t > 0, the product over slots of exp(-t share) / (1 - m(1 - exp(-t))) is a supermartingale if
// their mean is over m, and that of exp(t share) / (1 + m(exp(t) - 1)) if it is not. With a probability of at most alpha, a mean of
// such products ever exceeds 1/alpha (Ville), in any order of slots that their shares do not decide, and wherever in the order it is looked at.
type Evidence struct {
	// Slots is their number, Bad the sum of their shares of bad requests.
	Slots, Bad float64
}

// tilts are the values of t: small ones have power if many slots have a few bad requests each, large ones if a few slots are all bad.
var tilts = [...]float64{0.25, 0.5, 1, 2, 4}

// Add adds further slots.
func (e *Evidence) Add(of Evidence) {
	e.Slots += of.Slots
	e.Bad += of.Bad
}

// Meets reports whether the slots show that the objective is met. It is wrong with a probability of at most alpha.
func (e *Evidence) Meets(objective, alpha float64) bool {
	sum := 0.0
	for _, t := range tilts {
		sum += math.Exp(-t*e.Bad - e.Slots*math.Log1p(-(1-objective)*(1-math.Exp(-t))))
	}
	return sum >= float64(len(tilts))/alpha
}

// Misses reports whether the slots show that the objective is missed. It is wrong with a probability of at most alpha.
func (e *Evidence) Misses(objective, alpha float64) bool {
	sum := 0.0
	for _, t := range tilts {
		sum += math.Exp(t*e.Bad - e.Slots*math.Log1p((1-objective)*math.Expm1(t)))
	}
	return sum >= float64(len(tilts))/alpha
}

// Interval returns the share of good requests in such slots, with a confidence of 1 - 2 alpha: which objectives they neither meet nor miss.
func (e *Evidence) Interval(alpha float64) (low, high float64) {
	return bisect(func(objective float64) bool { return e.Meets(objective, alpha) }), bisect(func(objective float64) bool { return !e.Misses(objective, alpha) })
}

// bisect returns the highest share for which something holds that holds for those below.
func bisect(holds func(share float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 30 {
		if middle := (low + high) / 2; holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
