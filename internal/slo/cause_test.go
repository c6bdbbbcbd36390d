// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// The statuses of client mistakes are those of docs/definitions.md.
func TestCauseOf_FollowsTheStatus(t *testing.T) {
	mistakes := []int{400, 401, 403, 404, 405, 413, 415, 422}
	for status := range 700 {
		want := "other"
		switch {
		case slices.Contains(mistakes, status):
			want = "client"
		case status == 429:
			want = "rate_limit"
		case status >= 500:
			want = "server"
		}
		cause, failed := CauseOf(names.OutcomeError, status)
		require.True(t, failed)
		require.Equal(t, want, names.FailureCauses[cause], status)
	}
}

func TestCauseOf_OnlyAnErrorIsAClientMistake(t *testing.T) {
	cause, failed := CauseOf(names.OutcomeIncomplete, 401)
	require.True(t, failed)
	require.Equal(t, "other", names.FailureCauses[cause])
	for _, outcome := range []string{names.OutcomeSuccess, names.OutcomeCancelled, ""} {
		_, failed := CauseOf(outcome, 401)
		require.False(t, failed, outcome)
		require.False(t, IsClientMistake(outcome, 401), outcome)
	}
}
