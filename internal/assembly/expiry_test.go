// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExpire_EndsIdleStreams(t *testing.T) {
	s, c := newStore(roomy)
	expire := func() (ids []string) {
		tx := s.Expire(time.Minute, 10)
		for _, f := range tx.Finished {
			require.Nil(t, f.End)
			ids = append(ids, f.ID)
		}
		tx.Commit()
		return ids
	}
	apply(t, s, batchOf(t, s, "a", started, chunks(2, 1)))
	c.now += 40 * time.Second
	apply(t, s, batchOf(t, s, "b", started))
	require.Empty(t, expire())
	c.now += 20 * time.Second
	tx := s.Expire(time.Minute, 10)
	require.Len(t, tx.Finished, 1)
	require.Equal(t, []int{1, 2}, offsets(t, tx.Finished[0]))
	tx.Rollback()
	apply(t, s, batchOf(t, s, "a", chunks(3)))
	require.Empty(t, expire(), "it had an event meanwhile")
	c.now += 40 * time.Second
	require.Equal(t, []string{"b"}, expire())
	c.now += 20 * time.Second
	require.Equal(t, []string{"a"}, expire())
	require.Zero(t, s.Streams())
	require.Zero(t, s.Memory())
	for i := range 25 {
		apply(t, s, batchOf(t, s, strconv.Itoa(i), started))
	}
	require.Len(t, s.Expire(0, 10).Finished, 10, "at most limit")
}
