// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The report on AIPerf's run has the numbers that AIPerf computed, where the definitions agree. Percentiles are the nearest
// rank within 0.55%, AIPerf's are interpolated: with 89 requests, they lie between neighbours a few percent apart.
func TestReport_OnAIPerfHasTheNumbersOfAIPerf(t *testing.T) {
	out, err := run(t.Context(), "report", "internal/recording/testdata/aiperf_profile_export.jsonl.gz", "--format", "json")
	require.NoError(t, err)
	type indicator struct{ Count, Sum, Min, Max, P50, P95, P99 float64 }
	var report struct {
		Input struct {
			Requests int
			Notes    []string
		}
		Groups []struct {
			Outcomes map[string]struct {
				Requests   int
				Indicators map[string]indicator
			}
			Tokens map[string]float64
		}
	}
	require.NoError(t, json.NewDecoder(strings.NewReader(out)).Decode(&report))
	var cases []struct {
		ID       string
		Expected json.RawMessage
	}
	testenv.ReadJSON(t, "oracle/cases.json", &cases)
	var computed map[string]map[string]float64
	for _, c := range cases {
		if c.ID == "aiperf-run1" {
			require.NoError(t, json.Unmarshal(c.Expected, &computed))
		}
	}
	require.Len(t, report.Groups, 1)
	group := report.Groups[0]
	require.Equal(t, 100, report.Input.Requests)
	require.EqualValues(t, computed["request_count"]["avg"], group.Outcomes["success"].Requests)
	require.EqualValues(t, computed["error_request_count"]["avg"], group.Outcomes["cancelled"].Requests)
	require.Equal(t, map[string]float64{
		"input": computed["total_isl"]["avg"], "output": computed["total_osl"]["avg"], "reasoning": computed["total_reasoning_tokens"]["avg"],
	}, group.Tokens)
	for theirs, ours := range map[string]string{
		"ttft": "time_to_first_token", "request_latency": "request_duration",
		"inter_token_latency": "time_per_output_token", // AIPerf's is one number per request
		"inter_chunk_latency": "inter_token_latency",   // each chunk counts as one token
	} {
		expected, actual := computed[theirs], group.Outcomes["success"].Indicators[ours]
		const microsecond = 0.001 // to which times after the first token are exact, in milliseconds
		require.InDelta(t, expected["count"], actual.Count, 0, ours)
		require.InDelta(t, expected["avg"], actual.Sum/actual.Count*1e3, microsecond, ours)
		require.InDelta(t, expected["min"], actual.Min*1e3, microsecond, ours)
		require.InDelta(t, expected["max"], actual.Max*1e3, microsecond, ours)
		require.InEpsilon(t, expected["p50"], actual.P50*1e3, 0.0075, ours)
		require.InEpsilon(t, expected["p95"], actual.P95*1e3, 0.0075, ours)
		require.InEpsilon(t, expected["p99"], actual.P99*1e3, 0.04, ours)
	}
	require.Contains(t, strings.Join(report.Input.Notes, "\n"), "AIPerf does not record the tokens of a chunk: each counts as one")
}
