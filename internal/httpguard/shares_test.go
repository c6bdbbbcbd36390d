// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

func TestShares_LeaveHalfToOthers(t *testing.T) {
	greedy, other, third := httpguard.Client{Subject: "greedy"}, httpguard.Client{Subject: "other"}, httpguard.Client{Subject: "third"}
	s := httpguard.NewShares(20, httpguard.DefaultShare)
	taken := 0
	for s.Take(greedy) == httpguard.Accepted {
		taken++
	}
	require.Equal(t, 11, taken, "until less than half is free")
	require.Equal(t, httpguard.ShareFull, s.Take(greedy))
	for _, client := range []httpguard.Client{other, third} {
		require.Equal(t, httpguard.Accepted, s.Take(client))
		require.Equal(t, httpguard.Accepted, s.Take(client))
		require.Equal(t, httpguard.ShareFull, s.Take(client), "its share is a tenth")
	}
	s.Give(other)
	require.Equal(t, httpguard.Accepted, s.Take(other))
	require.EqualValues(t, 15, s.Held())
	for range taken {
		s.Give(greedy)
	}
	require.Equal(t, httpguard.Accepted, s.Take(greedy), "half is free again")
}

func TestShares_ALargerShareUpToTheLimit(t *testing.T) {
	s := httpguard.NewShares(3, 1)
	for range 3 {
		require.Equal(t, httpguard.Accepted, s.Take(httpguard.Client{}))
	}
	require.Equal(t, httpguard.Full, s.Take(httpguard.Client{}))
	require.EqualValues(t, 3, s.Limit())
}

func TestShareOf_IsRoundedAndAtLeastOne(t *testing.T) {
	for _, c := range []struct {
		limit    int
		share    float64
		expected int
	}{{100_000, 0.1, 10_000}, {5, 0.1, 1}, {1, 0.001, 1}, {100, 0.29, 29}, {6, 0.25, 2}, {64, 0.1, 6}, {3, 1, 3}} {
		require.Equal(t, c.expected, httpguard.ShareOf(c.limit, c.share), c)
	}
}

func TestShareProblems(t *testing.T) {
	for _, share := range []float64{0.001, 0.1, 1} {
		require.Empty(t, httpguard.ShareProblems(share))
	}
	for _, share := range []float64{0, -0.1, 1.01, 10_000, math.NaN(), math.Inf(1)} {
		require.Len(t, httpguard.ShareProblems(share), 1, share)
	}
}
