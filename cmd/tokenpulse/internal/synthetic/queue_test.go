// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// 10 requests per second of about 4 s each are ten times what four slots can take.
func TestQueue_OverloadWaitsAndRefuses(t *testing.T) {
	const slots, limit = 4, 10
	config := plain()
	config.Requests, config.Concurrency, config.QueueLimit = 500, slots, limit
	streams := all(t, config)
	during := func(at int64, from, to func(*stream.Stream) int64) (n int) {
		for _, s := range streams {
			if s.End.Error == "" && from(s) < at && at < to(s) {
				n++
			}
		}
		return n
	}
	start := func(s *stream.Stream) int64 { return s.Start }
	scheduled := func(s *stream.Stream) int64 { return s.Scheduled }
	end := func(s *stream.Stream) int64 { return s.LastTime() }
	refused, longest := 0, int64(0)
	for _, s := range streams {
		require.LessOrEqual(t, during(s.Start, scheduled, end), slots, "requests that run")
		if s.End.Error != "" {
			refused++
			require.Equal(t, "queue full", s.End.Error)
			require.Empty(t, s.Chunks)
			require.Zero(t, s.Scheduled)
			require.GreaterOrEqual(t, during(s.Start, start, scheduled), limit, "requests that wait")
			continue
		}
		require.LessOrEqual(t, during(s.Start, start, scheduled), limit+slots, "requests that wait, or are about to run")
		longest = max(longest, s.Scheduled-s.Start)
	}
	require.Greater(t, refused, 400)
	require.Less(t, refused, 480)
	require.Greater(t, longest, int64(5*time.Second), "ten requests of 4 s wait for four slots")
}

func TestQueue_DoesNotDelayUnderLowLoad(t *testing.T) {
	config := plain()
	config.Requests, config.Rate, config.QueueLimit = 500, 0.1, 1
	for _, s := range all(t, config) {
		require.Empty(t, s.End.Error)
		require.Less(t, s.Scheduled-s.Start, int64(200*time.Millisecond))
	}
}

func TestAttributes_OfRepeatedKeyAreMixed(t *testing.T) {
	config := plain()
	for _, pair := range []string{"tenant.id=a", "env=prod=eu", "tenant.id=b"} {
		require.NoError(t, config.AddAttribute(pair))
	}
	tenants := map[any]int{}
	for _, s := range all(t, config) {
		require.Equal(t, "prod=eu", s.Attributes["env"])
		tenants[s.Attributes["tenant.id"]]++
	}
	require.Len(t, tenants, 2)
	require.InDelta(t, 1000, tenants["a"], 150)
}
