// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Values of confseq, the reference implementation of Howard and Ramdas.
func TestShareEvidence_ReferenceValues(t *testing.T) {
	// beta_binomial_log_mixture(10, 100, 100, 0.2, 0.8, 0.05, false): of 625 requests, whose variance
	// is 100, the candidate has 10 more than the expected 125.
	require.InDelta(t, -0.6941012, logBetaMixture(135, 490, 0.2, 625), 1e-6)
	// beta_binomial_mixture_bound(100, 0.05, 100, 0.2, 0.8, 0.05, false)
	const bound = 31.4308
	for side, more := range []float64{-1e-4, 1e-4} {
		require.Equal(t, side == 1, rejects(logBetaMixture(125+bound+more, 500-bound-more, 0.2, 625), 1, 0.05))
	}
	// bernoulli_confidence_interval(700, 1000, 0.05, 100): shares outside are rejected.
	for _, c := range []struct {
		share    float64
		rejected bool
	}{{0.651628, true}, {0.651630, false}, {0.745948, false}, {0.745950, true}} {
		require.Equal(t, c.rejected, rejects(logBetaMixture(700, 300, c.share, 100), 1, 0.05), "%v", c.share)
	}
}
