// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
)

// latencyWriter writes the latency of streams, and the verdicts on them, in place of their timelines.
// It gives the same spans as token_latency does. It is not safe for concurrent use.
type latencyWriter struct {
	timelines    *timelineWriter
	keepTimeline bool
	observer     source.Observer
	analyzer     *latency.Analyzer
	annotator    *annotate.Annotator
	rules        *judge.Rules
	logger       *zap.Logger

	// Of the current stream.
	line     timeline.Timeline
	observed source.TokenStream
	derived  latency.Latency
}

func newLatencyWriter(cfg *annotate.Config, rules *judge.Rules, logger *zap.Logger, timelines *timelineWriter) *latencyWriter {
	return &latencyWriter{
		timelines:    timelines,
		keepTimeline: cfg.Timeline == annotate.TimelineKeep,
		analyzer:     latency.NewAnalyzer(cfg.Options()),
		annotator:    annotate.NewAnnotator(cfg),
		rules:        rules,
		logger:       logger,
	}
}

// write writes into a span that has everything else.
func (w *latencyWriter) write(span ptrace.Span, resource pcommon.Map, stream *assembly.Finished, tally *latencyreport.Tally) {
	var err error
	attributes := span.Attributes()
	w.line = stream.Chunks.Timeline()
	w.observed = Observed(stream, &w.line)
	observation := w.observer.ObserveTokenStream(&w.observed, attributes)
	w.derived, err = w.analyzer.Analyze(observation.Request, observation.Timeline)
	if err != nil { // chunks that are more than 142 years apart
		w.logger.Warn("cannot derive the latency of a stream, whose span has a timeline only; check the clock of its sender",
			zap.Error(err), zap.Stringer("trace_id", span.TraceID()), zap.Stringer("span_id", span.SpanID()))
		w.timelines.write(attributes, stream)
		return
	}
	if tally != nil {
		tally.Add(observation, &w.derived)
		tally.Explain(&w.derived, stream.Resource)
	}
	w.annotator.Write(attributes, observation, &w.derived)
	w.observed.WriteFlaws(attributes)
	if w.keepTimeline {
		attributes.PutEmptyBytes(names.Timeline).FromRaw(w.timelines.encode(&w.line, stream))
	}
	if w.rules.Any() {
		w.rules.JudgeSpan(span, resource)
	}
}
