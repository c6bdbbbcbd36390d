// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDecodeWindows_OtherBudgetWindowStartsEmpty(t *testing.T) {
	h := NewWindows(month)
	h.Add(time.Hour, Counts{Bad: 1})
	read, err := DecodeWindows(h.AppendBinary(nil), 2*month, time.Hour)
	require.NoError(t, err)
	bad := Counts{Bad: 1}
	require.Equal(t, Recent{Burn: [5]Counts{bad, bad, bad, bad, bad}}, read.Recent(time.Hour))
}

// If the clock was ahead at the save, or was set back since, requests stay and leave
// their windows as if they had been counted by the correct clock.
func TestDecodeWindows_MovesFutureRequestsToNow(t *testing.T) {
	for _, ahead := range []time.Duration{time.Second, time.Minute, 100 * time.Hour, 20_000 * time.Hour} {
		h := NewWindows(month)
		h.Add(72*time.Hour+ahead-4*time.Minute, Counts{Good: 1})
		h.Add(72*time.Hour+ahead, Counts{Bad: 1})
		read, err := DecodeWindows(h.AppendBinary(nil), month, 72*time.Hour)
		require.NoError(t, err)
		both, bad := Counts{Good: 1, Bad: 1}, Counts{Bad: 1}
		require.Equal(t, Recent{[5]Counts{both, both, both, both, both}, both}, read.Recent(72*time.Hour), ahead)
		require.Equal(t, bad, read.Recent(72*time.Hour + 2*time.Minute).Burn[0], ahead)
		require.Equal(t, Counts{}, read.Recent(72*time.Hour + 6*time.Minute).Burn[0], ahead)
	}
}

func TestDecodeWindows_RejectsMalformedInput(t *testing.T) {
	h := NewWindows(month)
	h.Add(time.Hour, Counts{Bad: 1})
	encoded := h.AppendBinary(nil)
	for length := range encoded {
		_, err := DecodeWindows(encoded[:length], month, time.Hour)
		require.ErrorIs(t, err, errMalformed, length)
	}
	_, err := DecodeWindows(append(encoded, 0), month, time.Hour)
	require.ErrorIs(t, err, errMalformed)
}

func one(good bool) Counts {
	if good {
		return Counts{Good: 1}
	}
	return Counts{Bad: 1}
}
