// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"hash/fnv"
	"math"
	"slices"
)

// sample holds the smallest hashes of an arm's requests: a random sample, and the same one for the same requests. It shows whether
// two arms share requests.
type sample []uint64 // ascending

const (
	maxSample = 128
	// maxShared is how many of the smallest hashes two arms may have in common. Different requests have different hashes.
	maxShared = 2
)

func (s *sample) add(r *Request) {
	h := mixed(uint64(nanoseconds(r.Start))) ^ r.PromptTokens
	for _, i := range [...]Indicator{TimeToFirstToken, TimePerOutputToken, RequestDuration} {
		h = mixed(h ^ math.Float64bits(r.Values[i]))
	}
	s.insert(h)
}

func (s *sample) insert(h uint64) {
	if len(*s) == maxSample && h >= (*s)[maxSample-1] {
		return
	}
	i, found := slices.BinarySearch(*s, h)
	if found {
		return
	}
	*s = slices.Insert(*s, i, h)
	if len(*s) > maxSample {
		*s = (*s)[:maxSample]
	}
}

func (s *sample) merge(other *sample) {
	for _, h := range *other {
		s.insert(h)
	}
}

// shared returns how many of the smallest hashes of both samples both have.
func (s sample) shared(other sample) (n int) {
	for i, j, seen := 0, 0, 0; i < len(s) && j < len(other) && seen < maxSample; seen++ {
		switch {
		case s[i] < other[j]:
			i++
		case s[i] > other[j]:
			j++
		default:
			n, i, j = n+1, i+1, j+1
		}
	}
	return n
}

// mixed is the finalizer of SplitMix64: each bit of the result depends on each bit of h.
func mixed(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return mixed(h.Sum64())
}
