// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package slowest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Every span asks whether it is among the slowest, and few are.
func TestAccepts_AllocatesNothing(t *testing.T) {
	s := New(0)
	for n := range 2 * perBoard {
		offer(s, "a", n, time.Now(), nil)
	}
	r := &series.Contribution{Dimensions: []string{"a"}, SpanID: [8]byte{9}}
	r.SetValue(numbers.RequestDuration, 0.001)
	require.Zero(t, testing.AllocsPerRun(100, func() { require.False(t, s.Accepts(r)) }))
}
