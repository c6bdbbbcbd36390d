// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package streamspan turns finished streams into spans.
//
// In a metrics pipeline, spans only serve to look at single requests. A stream outside of
// spans::share that breaches no SLO is not built: a sampler behind the receiver would drop spans
// that are already built, and exemplars would refer to dropped ones. The threshold in tracestate
// is that of the rule which kept the span, 0 for a breach, because a consumer that weights spans
// would otherwise count breaches too often. The price is that a stream outside of the share is
// walked twice, to judge it and to record it.
package streamspan

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// Settings are what a Maker needs.
type Settings struct {
	// Service is the name of the service in resources without one.
	Service string
	// Latency makes a Maker write latencies and verdicts into its spans, as token_latency would.
	// Without it, spans get a timeline for token_latency to read, and Rules and Logger are unused.
	Latency *annotate.Config
	// Rules are those of the SLOs in Latency.
	Rules *judge.Rules
	// Logger warns of streams whose latency cannot be derived.
	Logger *zap.Logger
	// Selection selects the streams that become spans. Nil selects all.
	Selection *Selection
}

// Maker makes the spans of finished streams. It is not safe for concurrent use.
type Maker struct {
	Settings
	observer  source.Observer
	analyzer  *latency.Analyzer   // nil if spans get timelines
	annotator *annotate.Annotator // nil if spans get timelines
	judge     *judge.SpanJudge    // likewise
	encoded   []byte              // buffer for one timeline
	// added is the largest number of attributes that a span had besides those of its sender.
	added int

	// Of the current stream.
	stream   assembly.Finished
	line     timeline.Timeline
	observed source.TokenStream
	derived  latency.Latency
}

// New returns a Maker.
func New(s *Settings) *Maker {
	m := &Maker{Settings: *s}
	if s.Latency != nil {
		m.analyzer, m.annotator = latency.NewAnalyzer(s.Latency.Options()), annotate.NewAnnotator(s.Latency)
		m.judge = judge.NewSpanJudge(s.Rules)
	}
	return m
}

// Made is the spans of finished streams.
type Made struct {
	Traces ptrace.Traces
	// IDs are those of the spans by stream, zero for a stream that was not selected.
	IDs []ID
	// Count is the number of spans.
	Count int
	// Removed is the number of attributes that senders must not set.
	Removed int
}

// Make converts each selected stream to a span. Streams with equal resources share one
// ResourceSpans. Derived latencies are added to the tally, unless that is nil.
func (m *Maker) Make(finished []assembly.Finished, tally *latencyreport.Tally) Made {
	resources := newResources(m.Service)
	made := Made{Traces: resources.traces, IDs: make([]ID, len(finished))}
	for i := range finished {
		m.stream = finished[i]
		resource := resources.of(m.stream.Resource)
		id := idOf(&m.stream.Start, m.stream.ID, resource.seed())
		chosen := m.Selection.choose(id, &m.stream)
		if chosen == notChosen {
			continue
		}
		span := resources.addSpan(resource)
		sent, end := m.stream.Attributes, m.stream.EndAttributes()
		span.Attributes().EnsureCapacity(wire.CountAttributes(sent) + wire.CountAttributes(end) + m.added)
		resources.removed += senderattributes.Put(span.Attributes(), sent) + senderattributes.Put(span.Attributes(), end)
		bySender := span.Attributes().Len()
		m.fill(span, id)
		m.writeTimings(span, resource.attributes, tally)
		m.Selection.mark(span, chosen)
		m.added = max(m.added, span.Attributes().Len()-bySender)
		made.IDs[i] = id
		made.Count++
	}
	m.stream, m.line, made.Removed = assembly.Finished{}, timeline.Timeline{}, resources.removed
	return made
}

// fill writes what does not depend on the timings into a span that has the attributes of its sender.
func (m *Maker) fill(span ptrace.Span, id ID) {
	stream := &m.stream
	span.SetName(cmp.Or(attributes.SpanName(span.Attributes()), names.SourceTokenStream))
	span.SetTraceID(id.Trace)
	span.SetSpanID(id.Span)
	span.SetParentSpanID(stream.Start.ParentSpanID)
	span.SetStartTimestamp(pcommon.Timestamp(stream.Start.UnixNano))
	span.SetEndTimestamp(pcommon.Timestamp(stream.EndUnixNano()))
	setKind(span, stream.Start.Vantage.OrDefault())
	setEnd(span, stream.End)
	m.setFailure(span)
}

// setFailure makes an error of a stream that does not report one itself: by its finish reason, or since
// it has no token.
func (m *Maker) setFailure(span ptrace.Span) {
	_, errorType := m.stream.Outcome()
	if errorType == "" {
		return
	}
	span.Status().SetCode(ptrace.StatusCodeError)
	if value, exists := span.Attributes().GetOrPutEmpty(names.ErrorType); !exists {
		value.SetStr(names.Category(errorType))
	}
}

func setKind(span ptrace.Span, v timeline.Vantage) {
	span.SetKind(ptrace.SpanKindServer)
	if v == timeline.VantageClient || v == timeline.VantageGateway {
		span.SetKind(ptrace.SpanKindClient)
	}
}

func setEnd(span ptrace.Span, end *assembly.End) {
	if end == nil {
		return
	}
	if end.Error != "" {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(end.Error)
	}
	attributes := span.Attributes()
	for _, count := range [...]struct {
		key    string
		tokens optional.Value[int64]
	}{
		{names.GenAIInputTokens, end.Usage.Input},
		{names.GenAIOutputTokens, end.Usage.Output},
		{names.GenAIReasoningTokens, end.Usage.Reasoning},
		{names.GenAICacheReadInputTokens, end.Usage.CachedInput},
		{names.GenAICacheWriteInputTokens, end.Usage.CacheWrite},
	} {
		if !count.tokens.Known {
			continue
		}
		if value, exists := attributes.GetOrPutEmpty(count.key); !exists {
			value.SetInt(count.tokens.Value)
		}
	}
	if end.FinishReason != "" {
		if value, exists := attributes.GetOrPutEmpty(names.GenAIFinishReasons); !exists {
			value.SetEmptySlice().AppendEmpty().SetStr(names.Category(end.FinishReason))
		}
	}
}
