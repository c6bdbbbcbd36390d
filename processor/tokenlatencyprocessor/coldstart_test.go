// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadatatest"
)

const (
	coldRequests = 3
	coldDuration = 10 * time.Second
	coldIdle     = time.Minute
)

func coldStarts(t *testing.T, more map[string]any) *Config {
	t.Helper()
	settings := map[string]any{"cold_start": map[string]any{"requests": coldRequests, "duration": "10s", "idle": "1m"}}
	maps.Copy(settings, more)
	cfg, err := load(t, settings)
	require.NoError(t, err)
	return cfg
}

// replicas name themselves in each way that counts, and in none.
var replicas = []struct {
	named bool
	name  func(span ptrace.Span, resource pcommon.Map)
}{
	{true, func(_ ptrace.Span, r pcommon.Map) { r.PutStr(names.ServiceInstanceID, "a") }},
	{true, func(_ ptrace.Span, r pcommon.Map) { r.PutStr(names.ServiceInstanceID, "b") }},
	{true, func(s ptrace.Span, _ pcommon.Map) { s.Attributes().PutStr(names.ServiceInstanceID, "c") }},
	{true, func(s ptrace.Span, _ pcommon.Map) { onEngine(s) }},
	{true, func(s ptrace.Span, _ pcommon.Map) {
		s.Attributes().PutStr(names.ServerAddress, "10.0.0.1")
		s.Attributes().PutStr(names.ServerPort, "8001")
	}},
	{true, func(s ptrace.Span, r pcommon.Map) { // that of a client is its own
		s.Attributes().PutStr(names.Vantage, "client")
		r.PutStr(names.ServiceInstanceID, "a")
		onEngine(s)
	}},
	{false, func(s ptrace.Span, r pcommon.Map) {
		s.Attributes().PutStr(names.Vantage, "gateway")
		r.PutStr(names.ServiceInstanceID, "a")
	}},
	{true, func(s ptrace.Span, _ pcommon.Map) { s.Attributes().PutStr(names.ServerAddress, "10.0.0.1") }},
	{true, func(_ ptrace.Span, r pcommon.Map) { r.PutStr("k8s.pod.name", "pod") }},
	{false, func(s ptrace.Span, r pcommon.Map) {
		s.Attributes().PutStr(names.Vantage, "client")
		r.PutStr("k8s.pod.name", "pod")
	}},
	{false, func(ptrace.Span, pcommon.Map) {}},
}

func TestColdStart_EqualsARecount(t *testing.T) {
	began := time.Now()
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), coldStarts(t, nil))
	random := rand.New(rand.NewPCG(3, 4))
	type request struct {
		replica   int
		open      reference.Interval
		delivered time.Time
	}
	var all []request
	for i := range replicas {
		at := began.Add(-20 * time.Second) // some are seen before the Collector knows
		if i%2 == 0 {
			at = began.Add(time.Hour)
		}
		for range 60 {
			at = at.Add(time.Duration(1 + random.Int64N(int64(5*time.Second))))
			if random.IntN(10) == 0 {
				at = at.Add(coldIdle/2 + time.Duration(random.Int64N(int64(coldIdle))))
			}
			end := at.Add(time.Duration(random.Int64N(int64(20 * time.Second))))
			late := time.Duration(random.Int64N(2) * random.Int64N(int64(30*time.Second)))
			all = append(all, request{i, reference.Interval{Start: at, End: end}, end.Add(late)})
		}
	}
	slices.SortFunc(all, func(a, b request) int { return a.delivered.Compare(b.delivered) })
	expected, count := make([][]bool, len(replicas)), map[bool]int{}
	for i := range replicas {
		var open []reference.Interval
		for _, r := range all {
			if r.replica == i {
				open = append(open, r.open)
			}
		}
		expected[i] = reference.ColdStarts(open, began, coldRequests, coldDuration, coldIdle)
	}
	for _, r := range all {
		traces, spans := newSpans()
		span := addStream(spans, 100)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.open.Start))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.open.End))
		replicas[r.replica].name(span, traces.ResourceSpans().At(0).Resource().Attributes())
		sink.Reset()
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		attributes := onlySpan(t, sink.AllTraces()[0]).Attributes()
		written, exists := attributes.Get(names.Cold)
		cold := expected[r.replica][0] && replicas[r.replica].named
		expected[r.replica] = expected[r.replica][1:]
		require.Equal(t, cold, exists, "replica %d at %s", r.replica, r.open.Start.Sub(began))
		require.True(t, !exists || written.Bool())
		count[cold]++
	}
	require.Greater(t, count[true], 50)
	require.Greater(t, count[false], 50)
}

// newReplica adds a request of ten milliseconds on a replica that no other span names.
func newReplica(traces ptrace.Traces, name string, start time.Time) {
	_, spans := newSpans()
	span := addStream(spans, 5)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(10 * time.Millisecond)))
	span.Attributes().PutStr(names.ServiceInstanceID, name)
	resource := traces.ResourceSpans().AppendEmpty()
	span.MoveTo(resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
}

func isCold(span ptrace.Span) bool {
	_, cold := span.Attributes().Get(names.Cold)
	return cold
}

func TestColdStart_OffWithoutTheKey(t *testing.T) {
	for _, test := range []struct {
		settings map[string]any
		cold     bool
	}{{nil, false}, {map[string]any{"cold_start": nil}, true}} {
		cfg, err := load(t, test.settings)
		require.NoError(t, err)
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
		traces := ptrace.NewTraces()
		newReplica(traces, "a", time.Now().Add(time.Hour))
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		require.Equal(t, test.cold, isCold(onlySpan(t, sink.AllTraces()[0])))
	}
}

// What an agent wrote stays if it is trusted: it may know the replica for longer.
func TestColdStart_OfAnotherProcessor(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), coldStarts(t, map[string]any{"trust_annotations": trusted}))
		traces := ptrace.NewTraces()
		newReplica(traces, "a", time.Now())
		traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutBool(names.Cold, true)
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		require.Equal(t, trusted, isCold(onlySpan(t, sink.AllTraces()[0])))
	}
}

func TestColdStart_CountsReplicasBeyondTheLimit(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	p, _ := newProcessor(t, metadatatest.NewSettings(telemetry), coldStarts(t, nil))
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	at := time.Now().Add(time.Hour)
	traces := ptrace.NewTraces()
	for i := range 10_000 + 7 {
		newReplica(traces, fmt.Sprint("replica-", i), at)
	}
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	metadatatest.AssertEqualProcessorTokenLatencyReplicasEvicted(t, telemetry, []metricdata.DataPoint[int64]{{Value: 7}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, p.Shutdown(t.Context()))
}

// An SLO counts without cold starts, whether the attribute is written or not.
func TestColdStart_SLOWithoutThem(t *testing.T) {
	slo := func(name, cold string) any {
		return map[string]any{"name": name, "indicator": "outcome", "match": map[string]any{names.Cold: cold}}
	}
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), coldStarts(t, map[string]any{
		"slos": []any{slo("warm", "false"), slo("cold", "true")},
	}))
	traces := ptrace.NewTraces()
	at := time.Now().Add(time.Hour)
	newReplica(traces, "a", at)
	newReplica(traces, "", at)
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	for i, met := range []string{"cold", "warm"} {
		span := sink.AllTraces()[0].ResourceSpans().At(i).ScopeSpans().At(0).Spans().At(0)
		require.Equal(t, map[string][]any{names.SLOMet: {met}}, verdictsOn(span))
	}
}
