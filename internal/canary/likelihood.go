// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"math/bits"
)

// The grid of odds ratios, candidate over baseline: powers of 1.02 between 1/32 and 32.
const (
	gridEnd  = 175 // the index of the odds ratio 1
	gridSize = 2*gridEnd + 1
)

var (
	logStep = math.Log(1.02)
	odds    = func() (o [gridSize]float64) {
		for i := range o {
			o[i] = math.Exp(logOdds(i))
		}
		return o
	}()
)

func logOdds(i int) float64 { return float64(i-gridEnd) * logStep }

// roundedDown returns the index of the largest odds ratio of the grid that is at most psi, and at
// least 1.
func roundedDown(psi float64) int {
	if !(psi > 1) {
		return gridEnd
	}
	return gridEnd + int(min(math.Log(psi)/logStep+1e-9, gridEnd))
}

// roundedUp returns the index of the smallest odds ratio of the grid that is at least psi and at least 1, or its end.
func roundedUp(psi float64) int {
	if psi <= 1 {
		return gridEnd
	}
	if steps := math.Log(psi)/logStep - 1e-9; steps < gridEnd {
		return gridEnd + int(math.Ceil(steps))
	}
	return gridSize - 1
}

// likelihood is the log likelihood of each odds ratio of the grid, relative to that of 1.
type likelihood [gridSize]float64

// add adds a window, divided by the dispersion. It compares the candidate's number of bad requests
// with its distribution given both arms' sizes and their total of bad requests (Fisher's noncentral
// hypergeometric distribution). What changes the odds of both arms alike cancels out.
//
// The error is below 1e-8. A window adds exactly 0 if it has no bad request, no good one, or an
// empty arm.
func (l *likelihood) add(baseline, candidate trials, dispersion float64) {
	// Bounds the time. A share of so many requests decides alike.
	const most = 1 << 20
	if excess := bits.Len64(max(baseline.n, candidate.n) / most); excess > 0 {
		for _, n := range [...]*uint64{&baseline.n, &baseline.bad, &candidate.n, &candidate.bad} {
			*n >>= excess
		}
	}
	u := newUrn(baseline, candidate)
	if u.first == u.last {
		return
	}
	var norms [gridSize]float64
	for i, psi := range odds {
		norms[i] = u.logNorm(psi, logOdds(i))
	}
	for i := range l {
		l[i] += (float64(candidate.bad)*logOdds(i) - (norms[i] - norms[gridEnd])) / dispersion
	}
}

// urn is a window of which both arms' sizes are known, and the number of bad requests. The
// candidate's number of bad requests is between first and last.
type urn struct {
	candidate, bad float64
	spare          float64 // the baseline's size less bad
	first, last    float64
	// mode is the most likely number of bad requests of the candidate for an odds ratio.
	mode, logMode float64
}

func newUrn(baseline, candidate trials) urn {
	bad := baseline.bad + candidate.bad
	u := urn{
		candidate: float64(candidate.n), bad: float64(bad), spare: float64(baseline.n) - float64(bad),
		first: float64(bad - min(bad, baseline.n)), last: float64(min(candidate.n, bad)),
	}
	u.mode, u.logMode = u.first, u.logWeight(u.first)
	return u
}

// step returns the weight of y+1 bad requests of the candidate over that of y, if the odds ratio is 1.
func (u *urn) step(y float64) float64 {
	return (u.candidate - y) * (u.bad - y) / ((y + 1) * (u.spare + y + 1))
}

// logWeight returns the log of the weight of y if the odds ratio is 1, less a constant.
func (u *urn) logWeight(y float64) (sum float64) {
	for _, n := range [...]float64{y, u.candidate - y, u.bad - y, u.spare + y} {
		v, _ := math.Lgamma(n + 1)
		sum -= v
	}
	return sum
}

// logNorm returns the log of the sum of all weights for an odds ratio, which must not be below that
// of the call before. The sum starts at its largest term, and ends where the terms no longer count:
// about nine standard deviations from there.
func (u *urn) logNorm(psi, logPsi float64) float64 {
	const negligible = 1e-17
	before := u.mode
	for end := u.last; u.mode < end; { // by bisection: a damaged window may have a million requests
		if middle := math.Floor((u.mode + end) / 2); psi*u.step(middle) >= 1 {
			u.mode = middle + 1
		} else {
			end = middle
		}
	}
	if u.mode != before {
		u.logMode = u.logWeight(u.mode)
	}
	sum, term := 1.0, 1.0
	for y := u.mode; y < u.last && term > negligible*sum; y++ {
		term *= psi * u.step(y)
		sum += term
	}
	term = 1
	for y := u.mode - 1; y >= u.first && term > negligible*sum; y-- {
		term /= psi * u.step(y)
		sum += term
	}
	return u.logMode + u.mode*logPsi + math.Log(sum)
}

// evidence has the logs of e-values against each odds ratio of the grid.
type evidence struct {
	// above are those against "at most this one", below against "at least".
	above, below [gridSize]float64
}

// evidence returns the e-values. Each is the mean of the likelihood ratios of the grid points on the
// far side. It is 1 as long as no window added anything, and then 0 at the end of the grid. The
// likelihood is log-concave, so that a sum can underflow only where the e-value is below 1.
func (l *likelihood) evidence() (e evidence) {
	best, ok := l.best()
	if !ok {
		return e
	}
	var relative [gridSize]float64
	for i := range l {
		relative[i] = math.Exp(l[i] - l[best])
	}
	above, below := 0.0, 0.0
	for i := range gridSize {
		j := gridSize - 1 - i
		e.below[i] = math.Log(below/float64(max(i, 1))) + l[best] - l[i]
		e.above[j] = math.Log(above/float64(max(i, 1))) + l[best] - l[j]
		below += relative[i]
		above += relative[j]
	}
	return e
}

// best returns the index of the most likely odds ratio. ok is false if all are alike.
func (l *likelihood) best() (index int, ok bool) {
	for i, v := range l {
		if v > l[index] {
			index = i
		}
	}
	return index, *l != likelihood{}
}
