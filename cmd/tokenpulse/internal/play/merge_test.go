// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMerge_DueTimeNeverDecreases(t *testing.T) {
	liveAndWhole(t, func(t *testing.T, live bool) {
		next, stop := iter.Pull(slices.Values(three()))
		defer stop()
		m := newMerge(next, live)
		last, events := int64(0), 0
		for due, ok := m.peek(); ok; due, ok = m.peek() {
			require.GreaterOrEqual(t, due, last)
			last = due
			events += m.pop().Events()
		}
		require.Equal(t, 13, events)
	})
}
