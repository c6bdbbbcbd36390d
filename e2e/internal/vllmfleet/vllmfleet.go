// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package vllmfleet sends spans as replicas of vLLM send them, of past hours within a second.
package vllmfleet

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// Tokens of each request.
const (
	Output = 100
	Prompt = 1000
)

// takes is the time that a request takes.
const takes = 2 * time.Second

// Fleet has replicas that each get as many requests.
type Fleet struct {
	// Address is that of an OTLP receiver over HTTP.
	Address  string
	Model    string
	Replicas []string
	// Describe adds the attributes of a replica to the resource of its spans. By default, they are service.name and
	// service.instance.id.
	Describe func(resource pcommon.Map, replica string)
	// At is when the next requests begin.
	At time.Time
}

// sent counts the requests of all fleets, so that each has an ID of its own.
var sent atomic.Int64

// Serve sends requests per second for a time. Those that are bad have their first token after 1.5 seconds, others after 0.2.
func (f *Fleet) Serve(t *testing.T, length time.Duration, perSecond float64, bad bool) {
	t.Helper()
	const batch = 2000
	all := ptrace.NewTraces()
	step := time.Duration(float64(time.Second) / perSecond)
	for end := f.At.Add(length); f.At.Before(end); f.At = f.At.Add(step) {
		for _, replica := range f.Replicas {
			f.add(all, replica, bad)
		}
		if all.SpanCount() >= batch {
			f.post(t, all)
			all = ptrace.NewTraces()
		}
	}
	f.post(t, all)
}

func (f *Fleet) add(all ptrace.Traces, replica string, bad bool) {
	resource := all.ResourceSpans().AppendEmpty()
	describe := f.Describe
	if describe == nil {
		describe = instance
	}
	describe(resource.Resource().Attributes(), replica)
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("llm_request")
	number := sent.Add(1)
	span.SetTraceID(pcommon.TraceID(fmt.Appendf(nil, "%016d", number)))
	span.SetSpanID(pcommon.SpanID(fmt.Appendf(nil, "%08d", number)))
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(f.At))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(f.At.Add(takes)))
	first := 0.2
	if bad {
		first = 1.5
	}
	a := span.Attributes()
	a.PutStr("gen_ai.request.model", f.Model)
	a.PutDouble("gen_ai.latency.time_to_first_token", first)
	a.PutDouble("gen_ai.latency.e2e", takes.Seconds())
	a.PutDouble("gen_ai.latency.time_in_queue", 0)
	a.PutInt("gen_ai.usage.completion_tokens", Output)
	a.PutInt("gen_ai.usage.prompt_tokens", Prompt)
}

func instance(resource pcommon.Map, replica string) {
	resource.PutStr("service.name", "vllm")
	resource.PutStr("service.instance.id", replica)
}

func (f *Fleet) post(t *testing.T, all ptrace.Traces) {
	t.Helper()
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(all)
	require.NoError(t, err)
	collector.PostSpans(t, f.Address, "application/x-protobuf", body)
}
