// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"iter"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// Source yields streams in the order of their starts.
type Source = iter.Seq[*stream.Stream]

// shifted moves the streams of a source in time, so that the first starts now.
func shifted(source Source) Source {
	return func(yield func(*stream.Stream) bool) {
		var by time.Duration
		begun := false
		for s := range source {
			if !begun {
				by, begun = time.Duration(time.Now().UnixNano()-s.Start), true
			}
			s.Shift(by)
			if !yield(s) {
				return
			}
		}
	}
}
