// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
)

// writeTimings writes the timings of the current stream into a span that has everything else: as they
// are, for token_latency to read, or as the latencies and verdicts that token_latency would write.
func (m *Maker) writeTimings(span ptrace.Span, resource pcommon.Map, tally *latencyreport.Tally) {
	attributes := span.Attributes()
	m.line = m.stream.Chunks.Timeline()
	m.observed = Observed(&m.stream, &m.line)
	if m.Latency == nil {
		m.observed.Write(attributes, m.encode())
		return
	}
	var err error
	observation := m.observer.ObserveTokenStream(&m.observed, attributes)
	m.derived, err = m.analyzer.Analyze(observation.Request, observation.Timeline)
	if err != nil { // chunks that are more than 142 years apart
		m.Logger.Warn("cannot derive the latency of a stream, whose span has a timeline only; check the clock of its sender",
			zap.Error(err), zap.Stringer("trace_id", span.TraceID()), zap.Stringer("span_id", span.SpanID()))
		m.observed.Write(attributes, m.encode())
		return
	}
	if tally != nil {
		tally.Add(&m.derived, observation.Unusable)
		tally.AddRejected(&observation.Rejected)
		tally.Explain(&m.derived, m.stream.Resource)
	}
	m.annotator.Write(attributes, observation, &m.derived)
	m.annotator.WriteEvents(span, &m.derived.Moments)
	m.observed.WriteFlaws(attributes)
	if m.stream.Cold {
		attributes.PutBool(names.Cold, true)
	}
	if m.Latency.Timeline == annotate.TimelineKeep {
		attributes.PutEmptyBytes(names.Timeline).FromRaw(m.encode())
	}
	if m.Rules.Any() {
		m.judge.Judge(span, resource)
		if m.judge.Timed && m.Selection == nil { // else the series report all
			engines.Judged(attributes, resource, m.judge.Slow)
		}
	}
}

// encode returns the encoded timeline of the current stream, until the next call.
func (m *Maker) encode() []byte {
	m.encoded = m.line.AppendBinary(m.encoded[:0], m.stream.Start.UnixNano)
	return m.encoded
}

// Observed returns what was observed of a stream. line is its timeline, or nil if that is not read.
func Observed(stream *assembly.Finished, line *timeline.Timeline) source.TokenStream {
	result, _ := stream.Outcome()
	var reason outcome.Reason
	if stream.End != nil {
		reason = stream.End.Reason()
	}
	return source.TokenStream{
		Vantage:       stream.Start.Vantage.OrDefault(),
		Start:         stream.Start.UnixNano,
		End:           stream.EndUnixNano(),
		Scheduled:     stream.Scheduled,
		Outcome:       result,
		Reason:        reason,
		ChunksDropped: int64(stream.Dropped()),
		Interrupted:   stream.Interrupted(),
		Cut:           stream.Cut,
		Timeline:      line,
	}
}
