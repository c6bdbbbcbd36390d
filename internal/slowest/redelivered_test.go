// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

func request(trace, span byte, vantage string) *series.Contribution {
	r := &series.Contribution{TraceID: [16]byte{trace}, SpanID: [8]byte{span}, Vantage: vantage, Arrival: time.Now()}
	r.SetValue(numbers.RequestDuration, 2)
	return r
}

// Requests without IDs cannot be recognised, so the store holds all of them.
func TestAdd_HoldsARequestOnce(t *testing.T) {
	s := slowest.New(-1)
	for range 3 {
		s.Add(request(1, 1, "client"), []byte("timeline"), slowest.Facts{})
	}
	require.False(t, s.Accepts(request(1, 1, "client")))
	for _, other := range []*series.Contribution{request(1, 1, "engine"), request(1, 2, "client"), request(2, 1, "client"), request(0, 0, ""), request(0, 0, "")} {
		require.True(t, s.Accepts(other))
		s.Add(other, nil, slowest.Facts{})
	}
	require.Len(t, s.Slowest(0, 0, 100, func(*slowest.Entry) bool { return true }), 6)
}
