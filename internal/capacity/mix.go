// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

const (
	// mixFactor is how much longer or shorter mean prompts and answers, or their ratio, may become.
	mixFactor = 2
	// recentRequests is about how many requests the recent mix has.
	recentRequests = 2000
	// referenceRequests make the reference of what is learned. It does not move later, so that a slow drift is noticed.
	referenceRequests = 100000
	// enoughRequests are needed to compare two mixes.
	enoughRequests = 500
)

// mix sums requests of known size and their tokens.
type mix Load

func (m *mix) add(s *offer) {
	m[Requests] += float64(s.requests() - s.Unsized)
	m[OutputTokens] += float64(s.Output)
	m[PromptTokens] += float64(s.Prompt)
}

// fade forgets as much as a slot adds to a mix of that many requests.
func (m *mix) fade(s *offer, requests float64) {
	keep := max(0, 1-float64(s.requests()-s.Unsized)/requests)
	for k := range m {
		m[k] *= keep
	}
}

// perRequest returns the mean tokens of a request.
func (m *mix) perRequest() (mean Load) {
	if m[Requests] > 0 {
		for k := range m {
			mean[k] = m[k] / m[Requests]
		}
	}
	return mean
}

// fits reports whether the recent requests have about the same lengths as these. It is true if either are too few to compare.
func (m *mix) fits(recent *mix) bool {
	if m[Requests] < enoughRequests || recent[Requests] < enoughRequests {
		return true
	}
	a, b := m.perRequest(), recent.perRequest()
	for k := OutputTokens; k < Kinds; k++ {
		if !alike(a[k], b[k]) {
			return false
		}
	}
	return alike(a[OutputTokens]*b[PromptTokens], b[OutputTokens]*a[PromptTokens])
}

// alike reports whether neither is more than mixFactor times the other.
func alike(a, b float64) bool { return a <= mixFactor*b && b <= mixFactor*a }
