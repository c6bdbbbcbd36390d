// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// The example of many glossaries: 300 ms to the first token, then 60 tokens per second, 240 tokens: 4.3 s end to end.
func TestAnalyze_ExampleOfGlossaries(t *testing.T) {
	chunks := make([]chunk, 240)
	for i := range chunks {
		chunks[i] = chunk{at: 300 + float64(i)*1000/60, tokens: 1}
	}
	l := analyze(t, standard, Observed{Duration: 4283 * time.Millisecond}, chunks)
	for id, expected := range map[numbers.ID]float64{
		numbers.TimeToFirstToken: 0.3, numbers.TimePerOutputToken: 1.0 / 60, numbers.OutputTokenRate: 60,
		numbers.RequestDuration: 4.3, numbers.RequestTokenRate: 240 / 4.283,
	} {
		require.InEpsilon(t, expected, l.Measures[id].Value, 0.005, id.Attribute())
	}
	require.InEpsilon(t, l.Measures[numbers.RequestDuration].Value,
		l.Measures[numbers.TimeToFirstToken].Value+239*l.Measures[numbers.TimePerOutputToken].Value, 0.001, "TTFT + (N - 1) TPOT")
}
