// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zaptest"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
)

const model = "gen_ai.request.model"

// begin is the start of the first request.
var begin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// request is a streamed answer: the arrivals of its tokens, in microseconds.
type request struct {
	model    string
	at       time.Duration
	arrivals []int64
	fails    bool
}

// spans returns one span for each request. Those of equal at have equal IDs.
func spans(requests ...request) ptrace.Traces {
	traces := ptrace.NewTraces()
	all := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for _, r := range requests {
		span := all.AppendEmpty()
		span.SetTraceID([16]byte{1, byte(r.at / time.Second)})
		span.SetSpanID([8]byte{2})
		span.SetKind(ptrace.SpanKindClient)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin.Add(r.at)))
		end := begin.Add(r.at)
		attributes := span.Attributes()
		attributes.PutStr("gen_ai.operation.name", "chat")
		attributes.PutStr(model, r.model)
		offsets := attributes.PutEmptySlice("tokenpulse.chunk.offsets")
		for _, us := range r.arrivals {
			offsets.AppendEmpty().SetInt(us)
			end = begin.Add(r.at + time.Duration(us)*time.Microsecond)
		}
		attributes.PutInt("gen_ai.usage.input_tokens", 10)
		attributes.PutInt("gen_ai.usage.output_tokens", int64(len(r.arrivals)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
		if r.fails {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	}
	return traces
}

// reportOf returns the report of requests by model, judged by TTFT of at most 200 ms.
func reportOf(t *testing.T, sli keeper.Config, batches ...ptrace.Traces) *Report {
	t.Helper()
	latency := tokenlatencyprocessor.NewFactory().CreateDefaultConfig().(*tokenlatencyprocessor.Config)
	latency.SLOs = []tokenlatencyprocessor.SLOConfig{{Name: "ttft", Indicator: "time_to_first_token", Threshold: "200ms"}}
	require.NoError(t, latency.SLOs[0].Validate())
	sli.Series.Dimensions = series.DimensionsOf(model)
	p, err := pipeline.New(t.Context(), pipeline.Settings{Latency: latency, SLI: &sli, Logger: zaptest.NewLogger(t)})
	require.NoError(t, err)
	for _, traces := range batches {
		require.NoError(t, p.Consume(t.Context(), traces))
	}
	require.NoError(t, p.Close(t.Context()))
	r := New(p, []string{model})
	r.SLOs = []SLO{{Name: "ttft", Indicator: "time_to_first_token", Threshold: 0.2, Objective: 0.9}}
	r.Input.Files = 1
	return r
}

var three = []request{
	{model: "a", at: 0, arrivals: []int64{100_000, 120_000, 160_000}},
	{model: "a", at: time.Second, arrivals: []int64{300_000, 310_000}},
	{model: "b", at: 9 * time.Second, arrivals: []int64{150_000, 1_000_000}, fails: true},
}

func TestReport_HasTheNumbersOfTheRequests(t *testing.T) {
	r := reportOf(t, keeper.NewDefaultConfig(), spans(three...))
	require.Equal(t, begin, r.Begin)
	require.Equal(t, begin.Add(10*time.Second), r.End)
	require.Equal(t, Input{Files: 1, Requests: 3, Notes: []string{}}, r.Input)
	require.Len(t, r.Groups, 2)
	a, b := &r.Groups[0], &r.Groups[1]
	require.Equal(t, map[string]string{model: "a"}, a.Labels)
	require.Equal(t, "client", a.Vantage)
	require.Equal(t, uint64(2), a.Outcomes["success"].Requests)
	require.Equal(t, uint64(1), b.Outcomes["error"].Requests)
	require.Equal(t, map[string]float64{"input": 20, "output": 5}, a.Tokens)
	require.Equal(t, Verdicts{Good: 1, Bad: 1}, a.SLOs["ttft"])
	// TTFT 100 and 300 ms; TPOT (160-100)/2 = 30 and 10 ms; gaps 20, 40 and 10 ms.
	ttft := a.Values(numbers.TimeToFirstToken)
	require.Equal(t, []float64{2, 0.4, 0.1, 0.3}, []float64{float64(ttft.Count()), ttft.Sum(), ttft.Min(), ttft.Max()})
	tpot := a.Values(numbers.TimePerOutputToken)
	require.InDelta(t, 0.04, tpot.Sum(), 1e-12)
	itl := a.Values(numbers.InterTokenLatency)
	require.Equal(t, uint64(3), itl.Count())
	require.InDelta(t, 0.07, itl.Sum(), 1e-12)
	require.InDelta(t, 0.04, itl.Max(), 1e-12)
	require.Equal(t, map[string]float64{"stall.duration": 0.85, "stalls": 1}, b.Totals)
}

func TestReport_CountsARepeatedSpanOnce(t *testing.T) {
	r := reportOf(t, keeper.NewDefaultConfig(), spans(three...), spans(three[1:]...))
	require.Equal(t, int64(3), r.Input.Requests)
	require.Equal(t, int64(2), r.Input.Duplicates)
	require.Equal(t, uint64(2), r.Groups[0].Requests())
}

func TestReport_GroupsBeyondTheLimitShareOne(t *testing.T) {
	sli := keeper.NewDefaultConfig()
	sli.Series.MaxSeries = 1
	r := reportOf(t, sli, spans(three...))
	require.Equal(t, int64(1), r.Input.Overflow)
	require.Len(t, r.Groups, 2)
	i := 0
	if !r.Groups[i].Overflow {
		i = 1
	}
	require.True(t, r.Groups[i].Overflow)
	require.Equal(t, uint64(1), r.Groups[i].Requests())
	require.Contains(t, table(t, r), "(others)")
}

func TestReport_JSONReadsBackAlike(t *testing.T) {
	r := reportOf(t, keeper.NewDefaultConfig(), spans(three...))
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	var read Report
	require.NoError(t, json.Unmarshal(encoded, &read))
	again, err := json.Marshal(&read)
	require.NoError(t, err)
	require.JSONEq(t, string(encoded), string(again))
	require.Equal(t, r.Groups[0].Values(numbers.TimeToFirstToken), read.Groups[0].Values(numbers.TimeToFirstToken))
}

// Others can merge the histograms: the buckets are those of an OpenTelemetry exponential histogram.
func TestReport_JSONHasTheBucketsOfTheValues(t *testing.T) {
	r := reportOf(t, keeper.NewDefaultConfig(), spans(three...))
	encoded, err := json.Marshal(r.Groups[0].Outcomes["success"].Indicators["time_to_first_token"])
	require.NoError(t, err)
	var h struct {
		Scale, Offset int
		Counts        []uint64 `json:"bucket_counts"`
	}
	require.NoError(t, json.Unmarshal(encoded, &h))
	require.Equal(t, 6, h.Scale)
	// ceil(log2(v)*64)-1 of 0.1 and 0.3
	require.Equal(t, -213, h.Offset)
	require.Len(t, h.Counts, -112+213+1)
	require.Equal(t, uint64(1), h.Counts[0])
	require.Equal(t, uint64(1), h.Counts[101])
}

func TestReport_RejectsHistogramsThatCannotBeTrue(t *testing.T) {
	for text, expected := range map[string]string{
		`{"count":1,"sum":1,"scale":5,"bucket_counts":[1]}`:                                      "scale 5",
		`{"count":1,"sum":9,"min":1,"max":1,"scale":6,"offset":-1,"bucket_counts":[1]}`:          "inconsistent",
		`{"count":1,"sum":1,"min":1,"max":1,"scale":6,"offset":2147483647,"bucket_counts":[1]}`:  "malformed",
		`{"count":1,"sum":1,"min":1,"max":1,"scale":6,"offset":-2000000000,"bucket_counts":[1]}`: "malformed",
	} {
		var h Histogram
		require.ErrorContains(t, json.Unmarshal([]byte(text), &h), expected, text)
	}
}

func table(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, r.WriteTable(&out, 0))
	return out.String()
}

func TestTable_ShowsTheNumbers(t *testing.T) {
	r := reportOf(t, keeper.NewDefaultConfig(), spans(three...))
	out := table(t, r)
	for _, expected := range []string{
		"3 requests in 1 file, 2026-11-01T12:00:00Z to 2026-11-01T12:00:10Z (10s)\n",
		"MODEL  VANTAGE  REQUESTS  SUCCESS  ERROR  INPUT TOKENS",
		"MODEL  VANTAGE  LATENCY   N  p50",
		"a      client   TTFT      2",
		"MODEL  VANTAGE  SLO   GOOD  BAD  NOT ELIGIBLE  ATTAINED  OBJECTIVE  MET  GOOD/S",
		"a      client   ttft  1     1    0             50.00%    90.00%     NO   0.10",
	} {
		require.Contains(t, out, expected)
	}
}

func TestTable_HasTheFirstAudio(t *testing.T) {
	spoken := spans(request{model: "a", arrivals: []int64{250_000, 300_000}})
	channels := spoken.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutEmptySlice("tokenpulse.chunk.channels")
	for range 2 {
		channels.AppendEmpty().SetStr("audio")
	}
	out := table(t, reportOf(t, keeper.NewDefaultConfig(), spoken))
	require.Regexp(t, `a +client +first audio +1 +250ms `, out)
	require.NotContains(t, out, "TTFT")
}

// A terminal obeys control characters, which names of senders may hold.
func TestTable_EscapesNames(t *testing.T) {
	r := reportOf(t, keeper.NewDefaultConfig(), spans(request{model: "m\x1b[2J\nforged", arrivals: []int64{1}}))
	out := table(t, r)
	require.NotContains(t, out, "\x1b")
	require.Contains(t, out, `m\x1b[2J\nforged`)
}

func TestTable_KeepsColumnsBelowLongNames(t *testing.T) {
	long := strings.Repeat("n", 80)
	out := table(t, reportOf(t, keeper.NewDefaultConfig(), spans(request{model: long, arrivals: []int64{1000, 2000}}, three[1])))
	require.Contains(t, out, fmt.Sprintf("%-80s  VANTAGE", "MODEL"))
	require.Contains(t, out, long+"  client")
}

// On a narrow terminal, names lose their middle: those that begin alike still differ.
func TestTable_CutsNamesToTheWidthOfTheTerminal(t *testing.T) {
	long := strings.Repeat("n", 78)
	r := reportOf(t, keeper.NewDefaultConfig(), spans(request{model: long + "-1", arrivals: []int64{1000, 2000}},
		request{model: long + "-2", at: time.Second, arrivals: []int64{1000, 2000}}))
	var out bytes.Buffer
	require.NoError(t, r.WriteTable(&out, 100))
	require.Contains(t, out.String(), "…")
	require.Contains(t, out.String(), "n-1  client")
	require.Contains(t, out.String(), "n-2  client")
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
	}
	// Numbers are never cut.
	out.Reset()
	require.NoError(t, r.WriteTable(&out, 20))
	require.Contains(t, out.String(), "nnnnnn…nnn-1  client   TTFT      1  1ms")
}

func TestTable_AnEmptyReportSaysSo(t *testing.T) {
	out := table(t, reportOf(t, keeper.NewDefaultConfig()))
	require.Equal(t, "No requests with a latency in 1 file.\n", out)
}
