// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// reader reads the model calls of one instrumentation.
type reader struct {
	// name is the value of the attribute names.Source.
	name string
	// vantage is the vantage of the instrumentation, unless the span carries its own.
	vantage timeline.Vantage
	// vantageOf replaces vantage for an instrumentation whose spans differ.
	vantageOf func(span ptrace.Span) timeline.Vantage
	// signs are attributes that hint at this instrumentation. The reader ignores a span without any.
	signs []*sign
	// claims reports whether a span with a sign is a model call of this instrumentation. If nil,
	// every such span is.
	claims func(c candidate) bool
	// firstChunkIsFrame is set if the first chunk that the instrumentation reports may be a frame
	// without a token, such as the frame with the role.
	firstChunkIsFrame bool
	// reportsStreaming is set if the instrumentation marks every call that streams.
	reportsStreaming bool
	// silentIsWhole reports whether a call does not stream if it reports neither streaming nor the time
	// of a token. If nil, such a call may stream.
	silentIsWhole func(c candidate) bool
	// attribute reads an attribute that is particular to the instrumentation. It may be nil.
	attribute func(o *Observation, key string, v pcommon.Value)
	// event reads an event that readEvents does not know. It may be nil.
	event func(o *Observation, span ptrace.Span, event ptrace.SpanEvent)
	// read reads a span that carries a timeline, in place of its events. If nil, it carries none. It
	// may keep chunks in the given buffer, which is empty.
	read func(o *Observation, span ptrace.Span, chunks *timeline.Timeline) error
}

// vantageIn returns the vantage that the span carries, or else the vantage of the instrumentation.
func (r *reader) vantageIn(c candidate) timeline.Vantage {
	if carried, _ := timeline.ParseVantage(c.text(names.Vantage)); carried != timeline.VantageUnspecified {
		return carried
	}
	if r.vantageOf != nil {
		return r.vantageOf(c.span)
	}
	return r.vantage
}
