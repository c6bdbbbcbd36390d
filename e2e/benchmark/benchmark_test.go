// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

func TestMedian_OddAndEven(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{9, 1, 2}))
	require.Equal(t, 2.5, median([]float64{3, 9, 1, 2}))
}

func TestComparison_RatioPerRound(t *testing.T) {
	measured := map[string][]measurement{
		"tokens": {{nanos: 10}, {nanos: 40}},
		"nop":    {{nanos: 4}, {nanos: 20}},
		"peer":   {{nanos: 16}, {nanos: 45}},
		"empty":  {{nanos: 4}, {nanos: 5}},
	}
	require.Equal(t, []float64{1.6, 1.125}, comparison{paths: []string{"peer", "tokens"}, ratio: quotient}.ratios(measured))
	require.Equal(t, []float64{0.5, 0.5}, comparison{paths: []string{"tokens", "nop", "peer", "empty"}, ratio: quotientMinusNop}.ratios(measured))
	require.Nil(t, comparison{paths: []string{"tokens", "left out"}, ratio: quotient}.ratios(measured))
	require.Nil(t, comparison{paths: []string{"left out", "tokens"}, ratio: quotient}.ratios(measured))
}

func TestGoal_Verdict(t *testing.T) {
	for name, test := range map[string]struct {
		goal    goal
		value   float64
		text    string
		verdict string
	}{
		"no goal":  {goal{}, 7, "", ""},
		"equal":    {goal{atLeast: 25}, 25, "at least 25", "yes"},
		"too low":  {goal{atLeast: 25}, 24.9, "at least 25", "no"},
		"below":    {goal{atMost: 1.5}, 1.5, "at most 1.5", "yes"},
		"too high": {goal{atMost: 1.5}, 1.51, "at most 1.5", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.text, test.goal.String())
			require.Equal(t, test.verdict, test.goal.verdict(test.value))
		})
	}
}

func TestTable_PadsColumns(t *testing.T) {
	require.Equal(t, ""+
		"| path  |  ns |\n"+
		"| ----- | --: |\n"+
		"| a → b |   7 |\n"+
		"| c     | 123 |\n",
		table([]string{"path", "ns"}, [][]string{{"a → b", "7"}, {"c", "123"}}))
}

func TestSum_IgnoresOtherMetrics(t *testing.T) {
	text := []byte("# TYPE calls_total counter\ncalls_total{a=\"b c\"} 3\ncalls_total 4\ncalls_total_other 100\nmore_calls_total 100\n")
	require.Equal(t, 7.0, sum(text, "calls_total"))
}

func TestNumberedBody_EachRequestHasItsOwnIDs(t *testing.T) {
	first := newNumberedBody(tokenStreams(planOf("a", 2, 1, models)))
	for _, number := range []string{"00000000", "00000001"} {
		var request tokenpulsev1.ExportTokenStreamsRequest
		require.NoError(t, proto.Unmarshal(first.next(), &request))
		var ids []string
		for _, s := range request.ResourceTokenStreams[0].TokenStreams {
			ids = append(ids, s.StreamId)
		}
		require.Equal(t, []string{"a-" + number + "-0000", "a-" + number + "-0001"}, ids)
	}
	both := numbered(same([]byte("id " + idMark)))
	require.Equal(t, "id 00000000", string(both[0].next()))
	require.Equal(t, "id 10000000", string(both[1].next()))
}
