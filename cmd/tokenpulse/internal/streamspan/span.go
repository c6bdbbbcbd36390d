// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Names of what a span of the conventions has instead of a timeline. Package source reads them.
const lastTokenEvent = "last_token"

func (b *Batches) fill(span ptrace.Span, s *stream.Stream) {
	own := span.Attributes()
	put(own, s.Attributes)
	end := s.End
	if end == nil {
		end = &stream.End{}
	}
	put(own, end.Attributes)
	span.SetName(cmp.Or(attributes.SpanName(own), names.SourceTokenStream))
	span.SetTraceID(b.ids.trace(s))
	span.SetSpanID(b.ids.span(s))
	if len(s.ParentSpanID) == 8 {
		span.SetParentSpanID(pcommon.SpanID(s.ParentSpanID))
	}
	setKind(span, s.Vantage.OrDefault())
	chunks := b.arrivals(s)
	setTimes(span, s, chunks)
	setEnd(span, end)
	b.setTimings(span, s, chunks)
}

func setKind(span ptrace.Span, v timeline.Vantage) {
	span.SetKind(ptrace.SpanKindServer)
	if v == timeline.VantageClient || v == timeline.VantageGateway {
		span.SetKind(ptrace.SpanKindClient)
	}
}

func setTimes(span ptrace.Span, s *stream.Stream, chunks []stream.Chunk) {
	end := max(s.Start, s.Scheduled)
	for _, c := range chunks {
		end = max(end, c.Time)
	}
	if s.End != nil && s.End.Time != 0 {
		end = s.End.Time
	}
	span.SetStartTimestamp(pcommon.Timestamp(s.Start))
	span.SetEndTimestamp(pcommon.Timestamp(end))
}

func setEnd(span ptrace.Span, end *stream.End) {
	if end.Error != "" {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(end.Error)
	}
	own := span.Attributes()
	if usage := end.Usage; usage != nil {
		for _, count := range [...]struct {
			key    string
			tokens *uint64
		}{
			{names.GenAIInputTokens, usage.InputTokens},
			{names.GenAIOutputTokens, usage.OutputTokens},
			{names.GenAIReasoningTokens, usage.ReasoningTokens},
			{names.GenAICacheReadInputTokens, usage.CachedInputTokens},
			{names.GenAICacheWriteInputTokens, usage.CacheWriteInputTokens},
		} {
			if count.tokens == nil {
				continue
			}
			if value, exists := own.GetOrPutEmpty(count.key); !exists {
				value.SetInt(int64(*count.tokens))
			}
		}
	}
	if end.FinishReason != "" {
		if value, exists := own.GetOrPutEmpty(names.GenAIFinishReasons); !exists {
			value.SetEmptySlice().AppendEmpty().SetStr(names.Category(end.FinishReason))
		}
	}
}

// setTimings writes when the tokens arrived, and how the stream ended.
func (b *Batches) setTimings(span ptrace.Span, s *stream.Stream, chunks []stream.Chunk) {
	result, errorType := outcomeOf(s, len(chunks) > 0)
	own := span.Attributes()
	if errorType != "" {
		span.Status().SetCode(ptrace.StatusCodeError)
		if value, exists := own.GetOrPutEmpty(names.ErrorType); !exists {
			value.SetStr(names.Category(errorType))
		}
	}
	if streams, ok := own.Get(names.GenAIRequestStream); ok && streams.Type() == pcommon.ValueTypeBool && !streams.Bool() || s.Arrivals == stream.Ends {
		setConventions(span, s, chunks, result)
		return
	}
	b.line.Reset()
	for _, c := range chunks {
		b.line.Append(c.Time, c.Tokens, c.Channel)
	}
	b.encoded = b.line.AppendBinary(b.encoded[:0], s.Start)
	observed := source.TokenStream{
		Vantage: s.Vantage.OrDefault(), Start: s.Start, Scheduled: s.Scheduled, Outcome: result,
		StartUnseen: s.Arrivals == stream.Unknown, // which leaves out the duration, for want of an end
		Interrupted: s.End != nil && s.End.Interrupted,
	}
	observed.Write(own, b.encoded)
	switch s.Arrivals {
	case stream.Frames:
		own.PutBool(names.Frames, true)
	case stream.Uncounted:
		own.PutBool(names.Uncounted, true)
	}
}

// setConventions writes the times of an answer that came whole, or of which only the first and the last arrival are
// known.
func setConventions(span ptrace.Span, s *stream.Stream, chunks []stream.Chunk, result string) {
	own := span.Attributes()
	if result == names.OutcomeCancelled {
		if value, exists := own.GetOrPutEmpty(names.ErrorType); !exists {
			value.SetStr("CancelledError")
		}
	}
	if s.Arrivals != stream.Ends {
		return
	}
	own.PutBool(names.GenAIRequestStream, true)
	if len(chunks) == 0 {
		return
	}
	first, last := chunks[0].Time, chunks[len(chunks)-1].Time
	own.PutDouble(names.GenAITimeToFirstChunk, float64(first-s.Start)/1e9)
	event := span.Events().AppendEmpty()
	event.SetName(lastTokenEvent)
	event.SetTimestamp(pcommon.Timestamp(last))
}

// outcomeOf returns how a stream ended, as the receiver would.
func outcomeOf(s *stream.Stream, token bool) (result, errorType string) {
	if s.End == nil {
		return names.OutcomeIncomplete, ""
	}
	reported := names.OutcomeSuccess
	switch {
	case s.End.Error != "":
		reported = names.OutcomeError
	case s.End.Cancelled, s.End.Interrupted:
		reported = names.OutcomeCancelled
	}
	return outcome.Of(&outcome.Facts{
		Reported:  reported,
		Reason:    outcome.Reason{}.Worse(s.End.FinishReason),
		InEngine:  s.Vantage == timeline.VantageEngine,
		Token:     token,
		Tokenless: s.End.Usage != nil && s.End.Usage.OutputTokens != nil && *s.End.Usage.OutputTokens > 0,
	})
}
