// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// judgedCase is the input of a case about requests that meet their SLOs, in the
// format of one of two tools.
type judgedCase struct {
	// AIPerf: times in nanoseconds, thresholds in milliseconds.
	Records []struct {
		Start  int64
		Chunks []int64
	}
	SLOms map[string]float64 `json:"slo_ms"`

	// DistServe: seconds.
	TokenTimes []float64 `json:"token_times"`
	OutputLen  int64     `json:"output_len"`
	SLO        map[string]float64
}

// indicatorOf maps the tools' names of indicators to ours.
var indicatorOf = map[string]string{
	"request_latency": "request.duration", "ttft": "time_to_first_token", "tpot": "time_per_output_token",
}

// A request is good when it meets every SLO that applies to it, see
// docs/definitions.md.
func TestOracleGoodput_CountsTheSameRequestsAsOtherTools(t *testing.T) {
	cases, _ := readOracle(t)
	ran := 0
	for _, c := range cases {
		if notOneRequest[c.ID] != reasonJudged && c.Expected["good"] == nil {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			in := parse[judgedCase](t, c.Input)
			requests := in.requests()
			require.NotEmpty(t, requests)
			count := 0
			for _, request := range requests {
				if in.isGood(t, request) {
					count++
				}
			}
			if expected := c.Expected["good"]; string(expected) == "true" || string(expected) == "false" {
				require.Equal(t, parse[bool](t, expected), count == len(requests))
			} else {
				require.Equal(t, parse[int](t, expected), count)
			}
		})
		ran++
	}
	require.Equal(t, 4, ran)
}

// requests returns the calls of a case.
func (c *judgedCase) requests() (all []call) {
	add := func(arrivals []int64) {
		request := newCall()
		for _, at := range arrivals {
			request.addContent(request.Start + at)
		}
		request.endAtLast()
		all = append(all, request)
	}
	for _, record := range c.Records {
		for i := range record.Chunks {
			record.Chunks[i] -= record.Start
		}
		add(record.Chunks)
	}
	if len(c.TokenTimes) > 0 {
		var arrivals []int64
		for _, at := range c.TokenTimes {
			arrivals = append(arrivals, int64(at*1e9))
		}
		add(arrivals)
	}
	return all
}

// isGood reports whether a request meets at least one SLO and breaches none.
func (c *judgedCase) isGood(t *testing.T, request call) bool {
	t.Helper()
	var slos []map[string]any
	for name, threshold := range c.SLOms {
		slos = append(slos, map[string]any{
			"name": name, "indicator": indicatorOf[name], "threshold": time.Duration(threshold * 1e6).String(),
		})
	}
	for name, threshold := range c.SLO {
		slos = append(slos, map[string]any{
			"name": name, "indicator": indicatorOf[name], "threshold": time.Duration(threshold * 1e9).String(),
		})
	}
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), judging(t, slos...))
	require.NoError(t, p.ConsumeTraces(t.Context(), request.span()))
	verdicts := verdictsOn(onlySpan(t, sink.AllTraces()[0]))
	return len(verdicts[names.SLOMet]) > 0 && len(verdicts[names.SLOBreached]) == 0
}
