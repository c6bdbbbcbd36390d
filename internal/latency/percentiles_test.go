// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

func TestAnalyze_LeavesOutOnlyPercentilesWithoutThem(t *testing.T) {
	chunks := arriving(t, 1_795_233_292_000_000_000, 100_000_000, 120_000_000, 150_000_000, 151_000_000)
	with, err := NewAnalyzer(Options{StallThreshold: 20 * ms}).Analyze(Observed{Duration: time.Second}, chunks)
	require.NoError(t, err)
	options := Options{StallThreshold: 20 * ms}
	percentiles := []numbers.ID{
		numbers.InterTokenP50, numbers.InterTokenP95, numbers.InterTokenP99,
		numbers.InterChunkP50, numbers.InterChunkP95, numbers.InterChunkP99,
	}
	for _, id := range percentiles {
		options.Omitted[id] = true
	}
	without, err := NewAnalyzer(options).Analyze(Observed{Duration: time.Second}, chunks)
	require.NoError(t, err)
	for _, id := range percentiles {
		require.True(t, with.Measures[id].Known)
		with.Measures[id] = Measure{}
	}
	require.Equal(t, with, without)
}
