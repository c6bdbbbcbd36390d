// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// begins are the spans of one scope of Logfire that begin a stream, which ends with them. The log of the stream is the
// request; its duration counts from there. If both are in one batch, the request has the duration of both.
type begins map[begin]ptrace.Span

type begin struct {
	trace  pcommon.TraceID
	parent pcommon.SpanID
	model  string
}

func beginOf(span ptrace.Span) begin {
	return begin{span.TraceID(), span.ParentSpanID(), attributes.Text(span.Attributes(), names.GenAIRequestModel)}
}

// beginsIn returns the spans of a scope, or nil for a scope of another sender.
func beginsIn(scope string, spans ptrace.SpanSlice) begins {
	if !strings.HasPrefix(scope, "logfire") {
		return nil
	}
	all := begins{}
	for _, span := range spans.All() {
		if span.EndTimestamp() > span.StartTimestamp() {
			all[beginOf(span)] = span
		}
	}
	return all
}

// apart is how far the end of the first span and the begin of the stream may be apart.
const apart = 100 * time.Millisecond

// before returns the time from the begin of a call to the begin of its stream, which took a duration until its log, or 0.
func (b begins) before(log ptrace.Span, stream time.Duration) time.Duration {
	if b == nil {
		return 0
	}
	first, ok := b[beginOf(log)]
	if !ok || log.EndTimestamp() != log.StartTimestamp() {
		return 0
	}
	between := time.Duration(log.StartTimestamp()-first.EndTimestamp()) - stream
	if between.Abs() > apart {
		return 0
	}
	return time.Duration(first.EndTimestamp() - first.StartTimestamp())
}
