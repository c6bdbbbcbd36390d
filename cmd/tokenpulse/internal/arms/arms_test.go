// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package arms

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/twosample"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

func add(a *Arms, r *series.Contribution) { a.Add("", r, ptrace.NewSpan(), pcommon.NewMap()) }

func TestArms_EachVantageHasItsOwn(t *testing.T) {
	var base, cand Arms
	for range 4 {
		add(&base, &series.Contribution{Vantage: "client"})
		add(&base, &series.Contribution{Vantage: "engine"})
		add(&cand, &series.Contribution{Vantage: "engine"})
	}
	add(&cand, &series.Contribution{Vantage: "gateway"})
	vantage, baseline, candidate, err := Common(&base, &cand)
	require.NoError(t, err)
	require.Equal(t, timeline.VantageEngine, vantage)
	require.Equal(t, uint64(4), baseline.Requests())
	require.Equal(t, uint64(4), candidate.Requests())
}

func TestArms_LeaveOutMistakesOfClientsAndTraces(t *testing.T) {
	var a Arms
	add(&a, &series.Contribution{Vantage: "client", Outcome: series.Error, Failure: optional.Of(slo.ClientMistake)})
	add(&a, &series.Contribution{Vantage: "client", TraceOnly: true})
	require.Zero(t, a.Requests()[timeline.VantageClient])
	add(&a, &series.Contribution{Vantage: "client", Outcome: series.Error, Failure: optional.Of(slo.ServerError)})
	require.Equal(t, uint64(1), a.Requests()[timeline.VantageClient])
}

// An answer of one token has no time per output token. One whose tokens are not reported has one that is unknown, which must not
// count as fast.
func TestArms_MissingLatenciesAreNoneOrUnknown(t *testing.T) {
	value := func(reason latency.Absence) float64 {
		r := &series.Contribution{}
		for place, id := range numbers.Indicators {
			if id == numbers.TimePerOutputToken {
				r.Latency.Absences[place] = reason
			}
		}
		return valueOf(twosample.TimePerOutputToken, r, nil)
	}
	for reason := latency.Present + 1; reason < latency.NumAbsences; reason++ {
		switch reason {
		case latency.NoToken, latency.NotStreamed, latency.OneToken:
			require.True(t, math.IsNaN(value(reason)), reason)
		default:
			require.True(t, math.IsInf(value(reason), 1), reason)
		}
	}
	r := &series.Contribution{}
	r.SetValue(numbers.TimePerOutputToken, 0.02)
	require.InDelta(t, 0.02, valueOf(twosample.TimePerOutputToken, r, nil), 0)
	r.SetValue(numbers.OutputTokens, 9)
	require.True(t, math.IsInf(valueOf(twosample.InterTokenLatency, r, nil), 1))
	r.SetValue(numbers.OutputTokens, 1)
	require.True(t, math.IsNaN(valueOf(twosample.InterTokenLatency, r, nil)))
}

func TestArms_JSONReadsBackAlike(t *testing.T) {
	var a, read Arms
	for range 3 {
		add(&a, &series.Contribution{Vantage: "client"})
		add(&a, &series.Contribution{})
	}
	text, err := json.Marshal(&a)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, a.Requests(), read.Requests())
	require.Equal(t, uint64(3), read.Requests()[timeline.VantageUnspecified])
	again, err := json.Marshal(&read)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
}
