// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

// sizes know the largest prompt, in bytes. A search is needed only when the last one of its size is removed.
type sizes struct {
	largest int64
	equal   int // prompts of that size
}

func (s *sizes) add(size int64) {
	switch {
	case s.equal == 0 || size > s.largest:
		*s = sizes{size, 1}
	case size == s.largest:
		s.equal++
	}
}

func (s *sizes) remove(size int64, rest []*Request) {
	if size < s.largest {
		return
	}
	if s.equal--; s.equal > 0 {
		return
	}
	*s = sizes{}
	for _, r := range rest {
		s.add(r.size)
	}
}
