// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

const ms = time.Millisecond

// call is a span that starts at began. A zero duration stands for a second.
type call struct {
	scope, name string
	kind        ptrace.SpanKind
	duration    time.Duration
	attributes  map[string]any
	events      []event
	dropped     uint32
}

type event struct {
	name       string
	after      time.Duration
	attributes map[string]any
}

const began = 1_795_233_292_000_000_000 // 2026-11-21T03:54:52Z

func (c *call) span(tb testing.TB) ptrace.Span {
	tb.Helper()
	span := ptrace.NewSpan()
	span.SetName(c.name)
	span.SetKind(c.kind)
	if c.duration == 0 {
		c.duration = time.Second
	}
	span.SetStartTimestamp(began)
	span.SetEndTimestamp(pcommon.Timestamp(began + c.duration))
	require.NoError(tb, span.Attributes().FromRaw(c.attributes))
	for _, e := range c.events {
		added := span.Events().AppendEmpty()
		added.SetName(e.name)
		added.SetTimestamp(pcommon.Timestamp(began + e.after))
		require.NoError(tb, added.Attributes().FromRaw(e.attributes))
	}
	span.SetDroppedEventsCount(c.dropped)
	return span
}

// source returns the name of the reader that claims the call, or "".
func (c *call) source(tb testing.TB) string {
	tb.Helper()
	o, err := new(Observer).Observe(c.scope, c.span(tb))
	require.NoError(tb, err)
	if o == nil {
		return ""
	}
	return Names()[o.Reader]
}

// latency returns the observation of a call that a reader claims, and its latency.
func (c *call) latency(tb testing.TB) (*Observation, latency.Latency) {
	tb.Helper()
	o, err := new(Observer).Observe(c.scope, c.span(tb))
	require.NoError(tb, err)
	require.NotNil(tb, o, "no reader claims the span")
	l, err := latency.NewAnalyzer(latency.Options{StallThreshold: 500 * ms}).Analyze(o.Request, o.Timeline)
	require.NoError(tb, err)
	return o, l
}

// firstToken returns the time to the first token.
func (c *call) firstToken(tb testing.TB) latency.Measure {
	tb.Helper()
	_, l := c.latency(tb)
	return l.Measures[numbers.TimeToFirstToken]
}

func exactly(seconds float64) latency.Measure { return latency.Measure{Value: seconds, Known: true} }

func about(seconds float64) latency.Measure {
	return latency.Measure{Value: seconds, Known: true, Estimated: true}
}

// with returns a copy of the attributes in which key has the value.
func with(attributes map[string]any, key string, value any) map[string]any {
	all := map[string]any{key: value}
	for k, v := range attributes {
		if _, replaced := all[k]; !replaced {
			all[k] = v
		}
	}
	return all
}
