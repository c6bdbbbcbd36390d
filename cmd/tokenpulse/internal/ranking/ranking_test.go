// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ranking

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zaptest"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// chat is the span of a request that started n seconds after start: the arrivals of its tokens, in milliseconds, and
// other attributes.
func chat(batch ptrace.Traces, n byte, attributes map[string]any, arrivals ...int64) ptrace.Span {
	resource := batch.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "shop")
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID([16]byte{1, n})
	span.SetSpanID([8]byte{2, n})
	span.SetKind(ptrace.SpanKindClient)
	at := start.Add(time.Duration(n) * time.Second)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
	span.Attributes().PutStr(names.GenAIOperationName, "chat")
	span.Attributes().PutStr(names.GenAIRequestModel, "m")
	offsets := span.Attributes().PutEmptySlice(names.ChunkOffsets)
	for _, ms := range arrivals {
		offsets.AppendEmpty().SetInt(ms * 1000)
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(ms) * time.Millisecond)))
	}
	for key, value := range attributes {
		if err := span.Attributes().PutEmpty(key).FromRaw(value); err != nil {
			panic(err)
		}
	}
	return span
}

// read passes a batch to a ranking, as the command does.
func read(t *testing.T, r *Ranking, batches ...ptrace.Traces) {
	t.Helper()
	readWith(t, r, config.Default(), batches...)
}

func readWith(t *testing.T, r *Ranking, settings config.Config, batches ...ptrace.Traces) {
	t.Helper()
	settings.Latency.Timeline = "keep"
	settings.Latency.SLOs = []judge.SLOConfig{{Name: "ttft", Indicator: "time_to_first_token", Threshold: "200ms"}}
	p, err := pipeline.New(t.Context(), pipeline.Settings{Latency: settings.Latency, SLI: settings.SLI, Logger: zaptest.NewLogger(t), Watch: r.Watch})
	require.NoError(t, err)
	for _, batch := range batches {
		require.NoError(t, p.Consume(t.Context(), batch))
	}
	require.NoError(t, p.Close(t.Context()))
}

func conditions(t *testing.T, texts ...string) (all []Condition) {
	t.Helper()
	for _, text := range texts {
		c, err := ParseCondition(text)
		require.NoError(t, err)
		all = append(all, c)
	}
	return all
}

// seconds returns after how many seconds the requests of a ranking started.
func seconds(r *Ranking) (all []int) {
	for _, q := range r.Slowest() {
		all = append(all, int(q.Start.Sub(start)/time.Second))
	}
	return all
}

func table(t *testing.T, r *Ranking) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, r.WriteTable(&out))
	return out.String()
}

// threeRequests differ in which one is slowest by which latency.
func threeRequests() ptrace.Traces {
	batch := ptrace.NewTraces()
	chat(batch, 1, map[string]any{"tenant": "a"}, 100, 120, 1000)                              // stalls, TPOT 450 ms
	chat(batch, 2, map[string]any{"tenant": "b", "server.address": "10.0.0.7"}, 700, 720, 740) // TTFT 700 ms
	failed := chat(batch, 3, map[string]any{"tenant": "b", names.ErrorType: "500"}, 300, 310, 320)
	failed.Status().SetCode(ptrace.StatusCodeError)
	failed.SetEndTimestamp(failed.EndTimestamp() + 1_000_000_000) // 1.32 s in all
	return batch
}

func TestRanking_ByEachLatency(t *testing.T) {
	for by, want := range map[numbers.ID][]int{
		numbers.RequestDuration:    {3, 1, 2},
		numbers.TimeToFirstToken:   {2, 3, 1},
		numbers.TimePerOutputToken: {1, 2, 3},
	} {
		r := New(by, 3, nil)
		read(t, r, threeRequests())
		require.Equal(t, want, seconds(r), by.APIName())
		r = New(by, 1, nil)
		read(t, r, threeRequests())
		require.Equal(t, want[:1], seconds(r), by.APIName())
	}
}

func TestTable_ShowsWhereTheTimeWent(t *testing.T) {
	r := New(numbers.RequestDuration, 20, nil)
	read(t, r, threeRequests())
	lines := strings.Split(table(t, r), "\n") // no request has input tokens, so there is no such column
	require.Equal(t, "The 3 slowest by request_duration of 3 requests", lines[0])
	fields := strings.Fields
	require.Equal(t, fields("START (UTC) DURATION TTFT TPOT MAX GAP OUTPUT MOST TIME STALLS OUTCOME VANTAGE MODEL TRACE SPAN REPLICA BREACHED"), fields(lines[2]))
	// The failed request waited longest after its last token: no phase explains it.
	require.Equal(t, fields("2026-11-01 12:00:03.000 1.32s 300ms 10ms 1s 3 - - error client m "+
		"01030000000000000000000000000000 0203000000000000 - ttft"), fields(lines[3]))
	require.Equal(t, fields("2026-11-01 12:00:01.000 1s 100ms 450ms 880ms 3 stalls 1 (880ms) success client m "+
		"01010000000000000000000000000000 0201000000000000 - -"), fields(lines[4]))
	// Without a known queue, prefill is an estimate.
	require.Equal(t, fields("2026-11-01 12:00:02.000 740ms 700ms 20ms 20ms 3 ~prefill - success client m "+
		"01020000000000000000000000000000 0202000000000000 10.0.0.7 ttft"), fields(lines[5]))
}

func TestRanking_EveryConditionHolds(t *testing.T) {
	for texts, want := range map[string][]int{
		"tenant=b":               {3, 2},
		"tenant=b outcome=error": {3},
		"vantage=client outcome=success tenant=a": {1},
		"service.name=shop tenant=b":              {3, 2},
		"tokenpulse.cold=false tenant=b":          {3, 2},
		"tokenpulse.cold=true":                    nil,
		"tenant=":                                 nil,
		"tenant=a tenant=b":                       nil,
	} {
		r := New(numbers.RequestDuration, 20, conditions(t, strings.Fields(texts)...))
		read(t, r, threeRequests())
		require.Equal(t, want, seconds(r), texts)
		require.Equal(t, int64(3), r.Requests)
		require.Equal(t, int64(len(want)), r.Matched)
		require.Empty(t, r.UnknownAttributes(), texts)
	}
}

// A wrong attribute would look like a file without such requests.
func TestRanking_NamesAttributesThatNoRequestHas(t *testing.T) {
	r := New(numbers.RequestDuration, 20, conditions(t, "outcome=cancelled", "tennant=a", "tenant=c", "gen_ai.model=m"))
	read(t, r, threeRequests())
	require.Empty(t, r.Slowest())
	require.Equal(t, []string{"tennant", "gen_ai.model"}, r.UnknownAttributes())
}

func TestParseCondition_RejectsWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "tenant", "=a"} {
		_, err := ParseCondition(text)
		require.ErrorContains(t, err, "is no condition; give attribute=value")
	}
	c, err := ParseCondition("a=b=c")
	require.NoError(t, err)
	require.Equal(t, "b=c", c.value)
}

func TestRanking_CountsRequestsWithoutTheLatency(t *testing.T) {
	batch := threeRequests()
	whole := chat(batch, 4, nil)
	whole.Attributes().Remove(names.ChunkOffsets)
	whole.SetEndTimestamp(whole.StartTimestamp() + 5e9)
	r := New(numbers.TimeToFirstToken, 20, nil)
	read(t, r, batch)
	require.Contains(t, table(t, r), "The 3 slowest by time_to_first_token of 4 requests (1 without this latency)\n")
}

// Its receiver counted the request before it sampled the spans. The span may come again.
func TestRanking_ListsAggregatedRequestsOnce(t *testing.T) {
	aggregated := func() ptrace.Traces {
		batch := ptrace.NewTraces()
		chat(batch, 1, map[string]any{names.Aggregated: true}, 100, 150, 400)
		return batch
	}
	r := New(numbers.RequestDuration, 20, nil)
	read(t, r, aggregated(), aggregated())
	require.Len(t, r.Slowest(), 1)
	require.InDelta(t, 0.25, r.Slowest()[0].Gap, 1e-9)
}

// The root of a trace has numbers of the trace, and is no request.
func TestRanking_LeavesOutTraces(t *testing.T) {
	batch := ptrace.NewTraces()
	call := chat(batch, 1, nil, 100, 200)
	root := batch.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	root.SetTraceID(call.TraceID())
	root.SetSpanID([8]byte{9})
	root.SetStartTimestamp(call.StartTimestamp())
	root.SetEndTimestamp(call.EndTimestamp() + 1e9)
	call.SetParentSpanID(root.SpanID())
	settings := config.Default()
	settings.Latency.RollUp = true
	r := New(numbers.RequestDuration, 20, nil)
	readWith(t, r, settings, batch)
	require.Equal(t, []int{1}, seconds(r))
	require.Equal(t, int64(1), r.Requests)
}

func TestRanking_RepeatedSpansAreListedOnce(t *testing.T) {
	r := New(numbers.RequestDuration, 20, nil)
	read(t, r, threeRequests(), threeRequests())
	require.Equal(t, []int{3, 1, 2}, seconds(r))
}

// A terminal obeys control characters, which senders may put into names.
func TestTable_EscapesNames(t *testing.T) {
	batch := ptrace.NewTraces()
	chat(batch, 1, map[string]any{names.GenAIRequestModel: "m\x1b[2J\nforged", "server.address": "h\x1b]0;x\a", names.Vantage: "client"}, 1, 2)
	r := New(numbers.RequestDuration, 20, nil)
	read(t, r, batch)
	out := table(t, r)
	require.NotContains(t, out, "\x1b")
	require.Contains(t, out, `m\x1b[2J\nforged`)
	require.Equal(t, 4, strings.Count(out, "\n"))
}

func TestTable_SaysThatItIsAPart(t *testing.T) {
	r := New(numbers.RequestDuration, 20, nil)
	r.Partial = true
	require.Equal(t, "The 0 slowest by request_duration of 0 requests. PART of the files: reading was interrupted.\n", table(t, r))
}

func TestJSON_HasTheNumbersAndNullForUnknownOnes(t *testing.T) {
	r := New(numbers.RequestDuration, 2, conditions(t, "outcome=success"))
	read(t, r, threeRequests())
	var out bytes.Buffer
	require.NoError(t, r.WriteJSON(&out))
	var l struct {
		Slowest  string
		Read     int `json:"requests_read"`
		Matched  int `json:"requests_matched"`
		Requests []map[string]any
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &l))
	require.Equal(t, []any{"request_duration", 3, 2}, []any{l.Slowest, l.Read, l.Matched})
	require.Equal(t, map[string]any{
		"start": "2026-11-01T12:00:01Z", "model": "m", "vantage": "client", "outcome": "success",
		"trace_id": "01010000000000000000000000000000", "span_id": "0201000000000000", "error_type": nil, "status": nil, "replica": nil,
		"source": "chunk_offsets", "estimated": []any{"prefill.duration"}, "reason": "stalls", "request_duration": 1.0,
		"time_to_first_token": 0.1, "time_per_output_token": 0.45, "queue": nil, "prefill": 0.1, "decode": 0.9, "network": nil, "transfer": nil,
		"input_tokens": nil, "cached_input_tokens": nil, "output_tokens": 3.0, "stalls": 1.0, "stall_duration": 0.88, "largest_gap": 0.88,
		"slos_breached": []any{},
	}, l.Requests[0])
}

// The requests grow slower, so that each displaces another one: the worst case.
func TestRankingMemory_IsThatOfItsRequests(t *testing.T) {
	const requests = 1_000_000
	span, resource := chat(ptrace.NewTraces(), 1, nil, 1, 2, 3), pcommon.NewMap()
	r := New(numbers.RequestDuration, 100, nil)
	var early uint64
	for n := range requests {
		c := &series.Contribution{TraceID: [16]byte{1, byte(n), byte(n >> 8), byte(n >> 16)}, SpanID: [8]byte{1}, Vantage: "client"}
		c.SetValue(numbers.RequestDuration, float64(n))
		r.Watch(c, span, resource)
		if n == 10_000 {
			early = heap()
		}
	}
	require.Len(t, r.held, 100)
	require.InDelta(t, early, heap(), 1<<20)
	require.Nil(t, r.Slowest()[0].Chunks, "there may be many")
	require.Equal(t, float64(requests-1), r.Slowest()[0].Value(numbers.RequestDuration))
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Whatever the order of the requests, the slowest are those that a sort has first.
func TestRanking_EqualsASort(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // for a test
	batch := ptrace.NewTraces()
	var durations []int64
	for n := range 200 {
		ms := random.Int64N(100_000)
		durations = append(durations, ms)
		chat(batch, byte(n), nil, ms)
	}
	r := New(numbers.RequestDuration, 17, nil)
	read(t, r, batch)
	slices.Sort(durations)
	slices.Reverse(durations)
	var found []int64
	for _, q := range r.Slowest() {
		found = append(found, int64(q.Value(numbers.RequestDuration)*1000+0.5))
	}
	require.Equal(t, durations[:17], found)
}
