// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zaptest"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

var begin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// calls are requests of an engine, one per second, of which the client sees the first ones.
type calls struct {
	traces ptrace.Traces
	n      int
}

func newCalls() *calls { return &calls{traces: ptrace.NewTraces()} }

// add adds a request with its attributes, as a span of a kind.
func (c *calls) add(kind ptrace.SpanKind, attributes map[string]any) ptrace.Span {
	c.n++
	resource := c.traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.instance.id", fmt.Sprintf("replica-%d", c.n%2))
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID([16]byte{byte(c.n), byte(c.n >> 8), 1})
	span.SetSpanID([8]byte{byte(c.n), byte(c.n >> 8), 1})
	span.SetKind(kind)
	start := begin.Add(time.Duration(c.n) * time.Second)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Second)))
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutStr("gen_ai.request.model", "m")
	for key, v := range attributes {
		_ = span.Attributes().PutEmpty(key).FromRaw(v)
	}
	return span
}

// read passes them through a pipeline whose SLO is a duration of 2 s.
func (c *calls) read(t *testing.T, l *List) {
	t.Helper()
	settings := config.Default()
	settings.Latency.SLOs = []judge.SLOConfig{{Name: "fast", Indicator: "request.duration", Threshold: "2s"}}
	require.NoError(t, settings.Latency.SLOs[0].Validate())
	p, err := pipeline.New(t.Context(), pipeline.Settings{Latency: settings.Latency, SLI: settings.SLI, Logger: zaptest.NewLogger(t), Watch: l.Add})
	require.NoError(t, err)
	require.NoError(t, p.Consume(t.Context(), c.traces))
	require.NoError(t, p.Close(t.Context()))
}

var sized = map[string]any{"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 20, "gen_ai.usage.cache_read.input_tokens": 512}

func TestList_KeepsWhatArrived(t *testing.T) {
	c, l := newCalls(), New("all")
	c.add(ptrace.SpanKindServer, sized)
	slow := c.add(ptrace.SpanKindServer, sized)
	slow.SetEndTimestamp(slow.EndTimestamp() + 5e9)
	refused := c.add(ptrace.SpanKindServer, map[string]any{"http.response.status_code": 429})
	refused.Status().SetCode(ptrace.StatusCodeError)
	mistaken := c.add(ptrace.SpanKindServer, map[string]any{"http.response.status_code": 400})
	mistaken.Status().SetCode(ptrace.StatusCodeError)
	c.read(t, l)
	all, vantage := l.Shown()
	require.Equal(t, timeline.VantageServer, vantage)
	at := func(seconds int) int64 { return begin.Add(time.Duration(seconds) * time.Second).UnixNano() }
	require.Equal(t, []Request{
		{Start: at(1), Seconds: 1, Output: 20, Prompt: 1000, Cached: 512, Sized: true, Replica: 1, Vantage: vantage, Verdict: slo.Good},
		{Start: at(2), Seconds: 6, Output: 20, Prompt: 1000, Cached: 512, Sized: true, Replica: 2, Vantage: vantage, Verdict: slo.Bad},
		{Start: at(3), Seconds: 1, Replica: 1, Vantage: vantage, Verdict: slo.Bad},
		{Start: at(4), Seconds: 1, Replica: 2, Vantage: vantage, Mistaken: true},
	}, all)
}

// A client that sees a third of the requests is not taken for all of them, one that sees half of them is.
func TestList_ShowsEachRequestOfOneVantage(t *testing.T) {
	for name, seen := range map[timeline.Vantage]int{timeline.VantageServer: 3, timeline.VantageClient: 5} {
		c, l := newCalls(), New("")
		for range 9 {
			c.add(ptrace.SpanKindServer, sized)
		}
		for range seen {
			c.add(ptrace.SpanKindClient, sized)
		}
		c.read(t, l)
		all, vantage := l.Shown()
		require.Equal(t, name, vantage)
		require.Len(t, all, int(l.Vantages[name]))
		require.Equal(t, 9+seen-len(all), l.Others())
	}
}

func TestList_LeavesOutSampledAndUndatedRequests(t *testing.T) {
	c, l := newCalls(), New("")
	c.add(ptrace.SpanKindServer, map[string]any{"tokenpulse.aggregated": true})
	c.add(ptrace.SpanKindServer, sized).SetStartTimestamp(0)
	c.add(ptrace.SpanKindServer, sized)
	c.read(t, l)
	all, _ := l.Shown()
	require.Len(t, all, 1)
	require.Equal(t, 1, l.Sampled)
	require.Equal(t, 1, l.Undated)
}

func TestList_IsBounded(t *testing.T) {
	c, l := newCalls(), New("")
	l.limit = 3
	for range 5 {
		c.add(ptrace.SpanKindServer, sized)
	}
	c.read(t, l)
	all, _ := l.Shown()
	require.Len(t, all, 3)
	require.Equal(t, 2, l.Dropped)
	for i := range MaxReplicas + 2 {
		require.Positive(t, l.replica("replica-0"))
		if n := l.replica(fmt.Sprintf("new-%d", i)); i >= MaxReplicas-2 {
			require.Zero(t, n)
		}
	}
	require.Len(t, l.replicas, MaxReplicas)
}
