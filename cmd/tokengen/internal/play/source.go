// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

// Source returns streams in the order of their starts, and false after the last.
type Source interface {
	Next() (*stream.Stream, bool)
}

// Recorded is a Source of streams that are in memory.
type Recorded []*stream.Stream

// Next returns the next stream.
func (r *Recorded) Next() (*stream.Stream, bool) {
	if len(*r) == 0 {
		return nil, false
	}
	s := (*r)[0]
	*r = (*r)[1:]
	return s, true
}

// shifted moves the streams of a source in time, so that the first starts now.
type shifted struct {
	source Source
	by     time.Duration
	begun  bool
}

func (s *shifted) Next() (*stream.Stream, bool) {
	next, ok := s.source.Next()
	if !ok {
		return nil, false
	}
	if !s.begun {
		s.by, s.begun = time.Duration(time.Now().UnixNano()-next.Start), true
	}
	next.Shift(s.by)
	return next, true
}
