// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

type load struct {
	Requests float64
	Output   float64 `json:"output_tokens"`
	Prompt   float64 `json:"prompt_tokens"`
}

// The engines of tokenpulse have a known limit: that of a constant load, which a simulation finds.
func TestExampleCapacity_LearnsMostOfAKnownLimit(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	collector.Setenv(t, "STORAGE_DIRECTORY", t.TempDir())
	example := collector.Example(t, "capacity/collector.yaml")
	c := collector.Start(t, example)
	output := collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--engines", "2", "--rate", "1", "--peak-rate", "5", "--fast", "--duration", "11h",
		"--seed", "1", "--transport", "protobuf", "--endpoint", c.HTTP)

	config, err := os.ReadFile(example)
	require.NoError(t, err)
	slo := find(t, `TTFT within (\S+) and TPOT within (\S+),`, output)
	for i, indicator := range []string{"time_to_first_token", "time_per_output_token"} {
		require.Contains(t, string(config), fmt.Sprintf("indicator: %s, threshold: %s}", indicator, slo[i]))
	}
	require.Contains(t, string(config), "{slo: all, objective: 0.95}")
	known := find(t, `for 95% of requests: ([\d.]+) requests/s, (\d+) output tokens/s, (\d+) prompt tokens/s`, output)

	var answer struct {
		Limit, Load load
		Utilization float64
		Replicas    []struct{ Replica string }
		Needed      float64 `json:"replicas_needed"`
	}
	c.AskPage(t, "capacity", &answer)
	for i, learned := range []float64{answer.Limit.Requests, answer.Limit.Output, answer.Limit.Prompt} {
		limit, err := strconv.ParseFloat(known[i], 64)
		require.NoError(t, err)
		require.Greater(t, learned, 0.6*limit)
		require.Less(t, learned, limit)
	}
	require.Len(t, answer.Replicas, 2)
	require.Equal(t, math.Ceil(max(answer.Load.Output/answer.Limit.Output, answer.Load.Prompt/answer.Limit.Prompt)), answer.Needed)
}

// find returns what an expression captures.
func find(t *testing.T, expression, text string) []string {
	t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(text)
	require.NotNil(t, found, "%s\n%s", expression, text)
	return found[1:]
}
