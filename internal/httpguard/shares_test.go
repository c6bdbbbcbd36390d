// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

func TestShares_LeaveHalfToOthers(t *testing.T) {
	greedy, other, third := httpguard.Client{Subject: "greedy"}, httpguard.Client{Subject: "other"}, httpguard.Client{Subject: "third"}
	s := httpguard.NewShares(20, 0)
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
	s := httpguard.NewShares(3, 3)
	for range 3 {
		require.Equal(t, httpguard.Accepted, s.Take(httpguard.Client{}))
	}
	require.Equal(t, httpguard.Full, s.Take(httpguard.Client{}))
	require.EqualValues(t, 3, s.Limit())
}
