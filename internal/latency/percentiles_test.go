// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnalyze_LeavesOutOnlyPercentilesWithoutThem(t *testing.T) {
	chunks := arriving(t, 1_795_233_292_000_000_000, 100_000_000, 120_000_000, 150_000_000, 151_000_000)
	with, err := NewAnalyzer(Options{StallThreshold: 20 * ms}).Analyze(Request{Duration: time.Second}, chunks)
	require.NoError(t, err)
	without, err := NewAnalyzer(Options{StallThreshold: 20 * ms, NoPercentiles: true}).Analyze(Request{Duration: time.Second}, chunks)
	require.NoError(t, err)
	for _, d := range []*Distribution{&with.InterToken, &with.InterChunk} {
		for _, p := range []Statistic{P50, P95, P99} {
			require.True(t, d[p].Known)
			d[p] = Measure{}
		}
	}
	require.Equal(t, with, without)
}
