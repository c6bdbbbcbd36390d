// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

func TestMedian_OddAndEven(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{9, 1, 2}))
	require.Equal(t, 2.5, median([]float64{3, 9, 1, 2}))
}

func TestRatio_EachRound(t *testing.T) {
	measured := results{
		{tokens10, wire}: {{nanos: 10}, {nanos: 40}},
		{tokens10, nop}:  {{nanos: 40}, {nanos: 20}},
	}
	r := ratio{tokens10, wire, nop}
	require.Equal(t, []float64{4, 0.5}, r.each(measured))
	require.Equal(t, "10 tokens: `otlp` → `nop` / metrics from the wire", r.String())
}

func TestCheckRatios_FailsUnderTwoThirdsOfBefore(t *testing.T) {
	group := []*path{{key: key{tokens10, wire}}, {key: key{tokens10, nop}}}
	file := filepath.Join(t.TempDir(), "measured.json")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	writeRatios(file, results{{tokens10, wire}: {{nanos: 10}}, {tokens10, nop}: {{nanos: 60}}}.medians([][]*path{group}))
	for name, test := range map[string]struct {
		nop     float64
		failure string
	}{
		"at the limit":    {40, ""},
		"under the limit": {39, "now 3.90, 3.90, 3.90, 3.90 (measured 4 times), before 6.00, limit 4.00"},
	} {
		t.Run(name, func(t *testing.T) {
			measured := results{{tokens10, wire}: {{nanos: 10}}, {tokens10, nop}: {{nanos: test.nop}}}
			err := checkRatios(file, [][]*path{group}, measured, func([]*path) results { return measured })
			if test.failure == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.failure)
			}
		})
	}
}

// Errors of the templates would otherwise show at the end of a full run.
func TestRender_FillsPageAndPlot(t *testing.T) {
	all := groups(options{collector: "ours", peers: "theirs"})
	measured := results{}
	for _, group := range all {
		for i, p := range group {
			measured[p.key] = []measurement{{nanos: float64(1000 * (i + 1))}}
		}
	}
	facts := map[string]any{"builds": []string{"build"}}
	for _, name := range regexp.MustCompile(`{{\.(\w+)}}`).FindAllStringSubmatch(documentTemplate, -1) {
		facts[name[1]] = "fact"
	}
	page := render(measured, measured, facts)
	require.NotRegexp(t, `NaN|Inf|no value|{{`, page+measured.detailTable(all))
	plot := measured.plot()
	require.NoError(t, xml.Unmarshal([]byte(plot), new(struct{})))
	require.NotRegexp(t, `NaN|-9223372036854775808`, plot)
}

func TestTable_PadsColumns(t *testing.T) {
	require.Equal(t, ""+
		"| path  |  ns |\n"+
		"| ----- | --: |\n"+
		"| a → b |   7 |\n"+
		"| c     | 123 |\n",
		aligned(table([]string{"path", "ns"}, [][]string{{"a → b", "7"}, {"c", "123"}})))
}

func TestSum_IgnoresOtherMetrics(t *testing.T) {
	text := "# TYPE calls_total counter\ncalls_total{a=\"b c\"} 3\ncalls_total 4\ncalls_total_other 100\nmore_calls_total 100\n"
	require.Equal(t, 7.0, sum(text, "calls_total"))
}

func TestNumberedBody_EachRequestHasItsOwnIDs(t *testing.T) {
	l := fixed("", 2, 1)
	first := newNumberedBody(tokenStreams(l.streams("a", 0), 0, 1), 0)
	for _, number := range []string{"00000000", "00000001"} {
		var request tokenpulsev1.ExportTokenStreamsRequest
		require.NoError(t, proto.Unmarshal(first.next(), &request))
		var ids []string
		for _, s := range request.ResourceTokenStreams[0].TokenStreams {
			ids = append(ids, s.StreamId)
		}
		require.Equal(t, []string{"a-" + number + "-0000", "a-" + number + "-0001"}, ids)
	}
}

func TestBodiesInTurn_ConnectionsAndTurnsHaveTheirOwnIDs(t *testing.T) {
	var sent []string
	do := same([]byte("id " + idMark)).inTurn(func(_ *collectorProcess, _ int, body []byte) {
		sent = append(sent, string(body))
	})
	for _, connection := range []int{0, 1, 0} {
		do(nil, connection)
	}
	require.Equal(t, []string{"id 00000000", "id 10000000", "id 00000001"}, sent)
}

// The published means of the trace are 211 and 28 tokens, the medians 129 and 13.
func TestMixes_KeepTheMeansOfTheTrace(t *testing.T) {
	require.Len(t, conversationLengths, 50)
	require.InDelta(t, 211, float64(mix("", conversationLengths, 2).tokens())/100, 0.5)
	require.InDelta(t, 28, float64(mix("", codeLengths, 10).tokens())/500, 0.5)
}

// Without all series, the load of many series would measure few.
func TestBodies_NameEverySeriesInEachPart(t *testing.T) {
	l := fixed("", 50, 4).ofSeries(200).inParts(2)
	named, chunks := map[string]int{}, 0
	for _, bodies := range l.bodies(tokenStreams) {
		require.Len(t, bodies, 4, "half of the four requests, in two parts")
		for _, body := range bodies {
			var request tokenpulsev1.ExportTokenStreamsRequest
			require.NoError(t, proto.Unmarshal(body, &request))
			for _, s := range request.ResourceTokenStreams[0].TokenStreams {
				chunks += len(s.ChunkRuns[0].TimeDeltas)
				if s.Start != nil {
					named[s.Start.Attributes[2].Value.GetStringValue()]++
				}
			}
		}
	}
	require.Len(t, named, 200)
	require.Equal(t, 200*4, chunks)
}

// A span of ours takes 400 ns beyond receiving, one of spanmetrics 100 ns. Each is measured in its own build.
func TestWithoutReceiving_TakesTheSameRoundAndBuild(t *testing.T) {
	measured := results{
		{foreignSpans, foreign}: {{nanos: 1000}, {nanos: 2000}}, {foreignSpans, nop}: {{nanos: 600}, {nanos: 900}},
		{foreignSpans, spanmetrics}: {{nanos: 800}}, {foreignSpans, peerNop}: {{nanos: 700}},
	}
	require.Equal(t, []float64{400, 1100}, measured.withoutReceiving(foreign, nop))
	require.Equal(t, []float64{100}, measured.withoutReceiving(spanmetrics, peerNop))
}

func TestMark_NumbersWhoseRoundsOverlap(t *testing.T) {
	measured := results{
		{tokens10, wire}:      {{nanos: 2000}, {nanos: 4000}},
		{tokens10, wireSpans}: {{nanos: 3000}, {nanos: 5000}},
		{tokens10, everySpan}: {{nanos: 3000}, {nanos: 5000}},
		{tokens10, wireSLOs}:  {{nanos: 5000}, {nanos: 7000}},
	}
	require.Equal(t, "≈ 4.00", measured.micros(tokens10, wireSpans))
	require.Equal(t, "4.00", measured.micros(tokens10, everySpan), "only spans of 1% are compared with none")
	require.Equal(t, "1.00", measured.more(tokens10, wire, tokens10), "the plain request itself")
	require.Equal(t, "≈ 1.33", measured.more(tokens10, everySpan, tokens10))
	require.Equal(t, "2.00", measured.more(tokens10, wireSLOs, tokens10))
}
