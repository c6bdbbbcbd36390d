package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{9, 1, 2}))
	require.Equal(t, 2.5, median([]float64{3, 9, 1, 2}))
}

func TestRatiosAreOfOneRound(t *testing.T) {
	measured := map[string][]measurement{
		"ours":  {{nanos: 10}, {nanos: 40}},
		"nop":   {{nanos: 4}, {nanos: 20}},
		"peer":  {{nanos: 16}, {nanos: 45}},
		"empty": {{nanos: 4}, {nanos: 5}},
	}
	require.Equal(t, []float64{1.6, 1.125}, comparison{paths: []string{"peer", "ours"}, ratio: quotient}.of(measured))
	require.Equal(t, []float64{0.5, 0.5}, comparison{paths: []string{"ours", "nop", "peer", "empty"}, ratio: aboveTheReceiver}.of(measured))
	require.Nil(t, comparison{paths: []string{"ours", "left out"}, ratio: quotient}.of(measured))
	require.Nil(t, comparison{paths: []string{"left out", "ours"}, ratio: quotient}.of(measured))
}

func TestGoals(t *testing.T) {
	for name, test := range map[string]struct {
		goal    goal
		value   float64
		text    string
		verdict string
	}{
		"none":       {goal{}, 7, "", ""},
		"just there": {goal{atLeast: 25}, 25, "at least 25", "yes"},
		"too low":    {goal{atLeast: 25}, 24.9, "at least 25", "no"},
		"low enough": {goal{atMost: 1.5}, 1.5, "at most 1.5", "yes"},
		"too high":   {goal{atMost: 1.5}, 1.51, "at most 1.5", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.text, test.goal.String())
			require.Equal(t, test.verdict, test.goal.verdict(test.value))
		})
	}
}

func TestTable(t *testing.T) {
	require.Equal(t, ""+
		"| path  |  ns |\n"+
		"| ----- | --: |\n"+
		"| a → b |   7 |\n"+
		"| c     | 123 |\n",
		table([]string{"path", "ns"}, [][]string{{"a → b", "7"}, {"c", "123"}}))
}

func TestSumIsOfOneMetricAlone(t *testing.T) {
	text := []byte("# TYPE calls_total counter\ncalls_total{a=\"b c\"} 3\ncalls_total 4\ncalls_total_other 100\nmore_calls_total 100\n")
	require.Equal(t, 7.0, sum(text, "calls_total"))
}
