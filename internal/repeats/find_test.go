// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package repeats

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// add appends an annotated call of one second to a batch.
func add(spans ptrace.SpanSlice, id, parent int, start int64, response string, output int64) {
	span := spans.AppendEmpty()
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, uint64(id))))
	span.SetParentSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, uint64(parent))))
	span.SetStartTimestamp(pcommon.Timestamp(start))
	span.SetEndTimestamp(pcommon.Timestamp(start + 1e9))
	attributes := span.Attributes()
	attributes.PutStr("tokenpulse.source", "semconv")
	attributes.PutStr("gen_ai.request.model", "m")
	if response != "" {
		attributes.PutStr("gen_ai.response.id", response)
	}
	attributes.PutInt("gen_ai.usage.input_tokens", 100)
	attributes.PutInt("gen_ai.usage.output_tokens", output)
}

// ofScopes returns a batch with these scopes of one resource.
func ofScopes(names ...string) (traces ptrace.Traces, spans []ptrace.SpanSlice) {
	traces = ptrace.NewTraces()
	scopes := traces.ResourceSpans().AppendEmpty().ScopeSpans()
	for _, name := range names {
		scope := scopes.AppendEmpty()
		scope.Scope().SetName(name)
		spans = append(spans, scope.Spans())
	}
	return traces, spans
}

// Whatever the calls: a call that counts is no repeat, the calls of one request have scopes of their own and no two
// responses, and none of them is lost.
func TestFind_RandomBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		traces, spans := ofScopes("a", "b", "c")
		n := 2 + random.IntN(12)
		for id := 1; id <= n; id++ {
			response := []string{"", "", "r", "s"}[random.IntN(4)]
			add(spans[random.IntN(3)], id, random.IntN(n+1), int64(random.IntN(3))*4e8, response, int64(51*(1+random.IntN(2))))
		}
		calls := CallsOf(traces)
		repeated, counted := map[int]bool{}, map[int][]int{}
		found := Find(calls)
		for _, r := range found {
			repeated[r.Call] = true
			if !r.Sum {
				counted[r.Counts] = append(counted[r.Counts], r.Call)
			}
		}
		for _, r := range found {
			require.False(t, repeated[r.Counts], "%v counts and repeats", r)
		}
		for counts, of := range counted {
			scopes, response := map[string]bool{}, ""
			for _, i := range append(of, counts) {
				require.False(t, scopes[calls[i].Scope], "two calls of one scope")
				scopes[calls[i].Scope] = true
				if id, ok := calls[i].Span.Attributes().Get("gen_ai.response.id"); ok {
					require.True(t, response == "" || response == id.Str(), "two responses")
					response = id.Str()
				}
			}
		}
	}
}

// Siblings that are all alike are parallel samples. They are compared with a bounded number of others each.
func TestFind_OfManyAlikeSiblings(t *testing.T) {
	traces, spans := ofScopes("a", "b")
	const n = 20_000
	for id := range n {
		add(spans[id%2], id+1, n+1, 0, "", 51)
	}
	require.Empty(t, Find(CallsOf(traces)))
}

// 40 calls in turn below one span, of which two instrumentations sent one each, are 40 requests.
func TestFind_OfManySiblingsInTurn(t *testing.T) {
	for name, response := range map[string]string{"with IDs": "r%d", "without IDs": ""} {
		t.Run(name, func(t *testing.T) {
			traces, spans := ofScopes("a", "b")
			for i := range 40 {
				id := ""
				if response != "" {
					id = fmt.Sprintf(response, i)
				}
				add(spans[0], 2*i+1, 100, int64(i)*1.1e9, id, 51)
				add(spans[1], 2*i+2, 100, int64(i)*1.1e9+5e6, id, 51)
			}
			require.Len(t, Find(CallsOf(traces)), 40)
		})
	}
}

// Calls that are each other's parents all count.
func TestFind_OfRings(t *testing.T) {
	traces, spans := ofScopes("a", "b")
	const n = 10_000
	for id := range n {
		add(spans[id%2], id+1, (id+1)%n+1, 0, "", 51)
	}
	calls := CallsOf(traces)
	require.Len(t, calls, n)
	require.Empty(t, Find(calls))
}

// One service and, in the second batch, a framework above its SDK.
func BenchmarkCallsOf(b *testing.B) {
	const n = 1000
	for name, scopes := range map[string][]string{"one scope": {"a", "a"}, "two scopes": {"a", "b"}} {
		traces, spans := ofScopes(scopes...)
		for id := range n {
			add(spans[id%2], id+1, id-id%2, int64(id)*1e6, fmt.Sprint("r", id/2), 51)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if calls := CallsOf(traces); calls != nil {
					Find(calls)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/span")
		})
	}
}
