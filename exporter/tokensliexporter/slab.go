// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

// slab allocates values in blocks: a scrape consists of many small values with the same
// lifetime.
type slab[T any] struct{ free []T }

const slabSize = 1024

// take returns n zero values.
func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		s.free = make([]T, max(n, slabSize))
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

func (s *slab[T]) one() *T { return &s.take(1)[0] }

func (s *slab[T]) of(v T) *T {
	p := s.one()
	*p = v
	return p
}
