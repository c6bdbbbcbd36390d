// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// saved returns what a table saves of its only limit.
func (s *service) saved(t *testing.T) (key Key, version Version, encoded []byte) {
	t.Helper()
	n := 0
	s.Save(func(k Key, v Version, encode func() []byte) { key, version, encoded, n = k, v, encode(), n+1 })
	require.Equal(t, 1, n)
	return key, version, encoded
}

// The storage writes what has another version, so each slot has to change it.
func TestSave_VersionsFollowTheSlots(t *testing.T) {
	s := newService()
	s.serve(100, 15, Good, "a")
	_, before, old := s.saved(t)
	_, again, _ := s.saved(t)
	require.Equal(t, before, again)
	s.serve(1, 15, Good, "a")
	_, after, current := s.saved(t)
	require.NotEqual(t, before, after)
	require.NotEqual(t, old, current)
}

// A restored limit goes on to age, also before the first request.
func TestRestore_LimitsGetStaleAndAreForgotten(t *testing.T) {
	s := newService()
	s.toKnee("a")
	key, _, encoded := s.saved(t)
	missed := s.state(t).MissedAt
	for after, want := range map[time.Duration]struct {
		stale  bool
		reason Reason
	}{time.Hour: {}, 25 * time.Hour: {stale: true}, 8 * 24 * time.Hour: {reason: KneeNotSeen}} {
		table, now := NewTable(s.Objectives()), missed.Add(after)
		require.NoError(t, table.Restore(key, encoded, now))
		restored := visited(table, now)
		require.Len(t, restored, 1)
		require.Equal(t, want.reason, restored[0].Reason, after)
		require.Equal(t, want.stale, restored[0].Stale, after)
	}
	table := NewTable(nil)
	require.NoError(t, table.Restore(key, encoded, missed))
	require.Empty(t, visited(table, missed), "no SLO asks for it now")
}
