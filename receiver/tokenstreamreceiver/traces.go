// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/vantage"
)

// toTraces converts each stream to a span. Streams with equal resources share one
// ResourceSpans. removed is the number of attributes that senders must not set.
func toTraces(finished []assembly.Finished) (traces ptrace.Traces, removed int) {
	resources := newResources()
	var timeline []byte
	for _, stream := range finished {
		resource := resources.of(stream.Resource)
		span := resource.spans.AppendEmpty()
		resources.removed += fillSenderAttributes(span, stream)
		timeline = fillSpan(span, stream, resource, timeline[:0])
	}
	return resources.traces, resources.removed
}

// fillSenderAttributes writes the attributes that the sender set into an empty span, and
// returns the number of those that it must not set.
func fillSenderAttributes(span ptrace.Span, stream assembly.Finished) (removed int) {
	attributes := span.Attributes()
	attributes.EnsureCapacity(names.SpanAttributeCapacity)
	removed = putSenderAttributes(attributes, stream.Attributes)
	if stream.End != nil {
		removed += putSenderAttributes(attributes, stream.End.Attributes)
	}
	return removed
}

// fillSpan writes the rest of a stream into a span. It returns scratch, which may have grown, for
// the next call.
func fillSpan(span ptrace.Span, stream assembly.Finished, resource *resource, scratch []byte) []byte {
	attributes := span.Attributes()
	setIDs(span, stream.Stream, resource)
	span.SetStartTimestamp(pcommon.Timestamp(stream.Start.UnixNano))
	span.SetEndTimestamp(pcommon.Timestamp(stream.EndUnixNano()))
	span.SetName(spanName(attributes))
	setVantage(span, stream.Start.Vantage)
	setEnd(span, stream.End)

	line := stream.Chunks.Timeline()
	scratch = line.AppendBinary(scratch, stream.Start.UnixNano)
	attributes.PutEmptyBytes(names.Timeline).FromRaw(scratch)
	if stream.Start.Implied {
		attributes.PutBool(names.StartUnseen, true)
	} else if stream.Scheduled != 0 {
		queued := time.Duration(stream.Scheduled - stream.Start.UnixNano)
		attributes.PutDouble(names.QueueDuration, queued.Seconds())
	}
	if stream.Cut {
		attributes.PutStr(names.Cut, names.CutCollector)
	}
	if stream.Chunks.Frames {
		attributes.PutBool(names.Frames, true)
	}
	if dropped := stream.Dropped(); dropped > 0 {
		attributes.PutInt(names.ChunksDropped, int64(dropped))
	}
	return scratch
}

func spanName(attributes pcommon.Map) string {
	operation, model := attributeText(attributes, names.GenAIOperationName), attributeText(attributes, names.GenAIRequestModel)
	switch {
	case operation == "" && model == "":
		return names.SourceTokenStream
	case operation == "" || model == "":
		return operation + model
	default:
		return operation + " " + model
	}
}

func attributeText(attributes pcommon.Map, key string) string {
	if value, ok := attributes.Get(key); ok {
		return value.AsString()
	}
	return ""
}

func setVantage(span ptrace.Span, v vantage.Vantage) {
	v = vantageOf(v)
	span.Attributes().PutStr(names.Vantage, v.String())
	span.SetKind(ptrace.SpanKindServer)
	if v == vantage.Client || v == vantage.Gateway {
		span.SetKind(ptrace.SpanKindClient)
	}
}

func outcomeOf(end *assembly.End) string {
	switch {
	case end == nil:
		return names.OutcomeIncomplete
	default:
		return outcomeOfEnd(end.Error != "", end.Cancelled)
	}
}

func outcomeOfEnd(failed, cancelled bool) string {
	switch {
	case failed:
		return names.OutcomeError
	case cancelled:
		return names.OutcomeCancelled
	default:
		return names.OutcomeSuccess
	}
}

func setEnd(span ptrace.Span, end *assembly.End) {
	attributes := span.Attributes()
	attributes.PutStr(names.Outcome, outcomeOf(end))
	if end == nil {
		return
	}
	if end.Error != "" {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(end.Error)
	}
	for _, count := range [...]struct {
		key    string
		tokens optional.Value[int64]
	}{
		{names.GenAIInputTokens, end.Usage.Input},
		{names.GenAIOutputTokens, end.Usage.Output},
		{names.GenAIReasoningTokens, end.Usage.Reasoning},
		{names.GenAICacheReadInputTokens, end.Usage.CachedInput},
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
			value.SetEmptySlice().AppendEmpty().SetStr(end.FinishReason)
		}
	}
}

// setIDs sets the IDs of the span.
func setIDs(span ptrace.Span, stream *assembly.Stream, resource *resource) {
	traceID, spanID := idsOf(stream, resource)
	span.SetTraceID(traceID)
	span.SetSpanID(spanID)
	span.SetParentSpanID(stream.Start.ParentSpanID)
}

// idsOf returns the IDs of a stream's span. Missing IDs are derived from the stream, so that a
// stream that is sent twice results in the same span twice.
func idsOf(stream *assembly.Stream, resource *resource) (traceID [16]byte, spanID [8]byte) {
	traceID, spanID = stream.Start.TraceID, stream.Start.SpanID
	if traceID == [16]byte{} || spanID == [8]byte{} {
		derived := deriveIDs(stream, resource)
		if traceID == [16]byte{} {
			copy(traceID[:], derived[:16])
		}
		if spanID == [8]byte{} {
			copy(spanID[:], derived[16:])
		}
	}
	return traceID, spanID
}

// maxHashedResource is the size in bytes up to which each stream hashes its resource.
// The streams of a larger one hash its digest.
const maxHashedResource = 512

func deriveIDs(stream *assembly.Stream, resource *resource) [sha256.Size]byte {
	var room [1024]byte // avoids an allocation
	seed := append(room[:0], stream.Start.TraceID[:]...)
	seed = append(seed, stream.Start.SpanID[:]...)
	seed = append(seed, stream.Start.ParentSpanID[:]...)
	seed = binary.BigEndian.AppendUint64(seed, uint64(stream.Start.UnixNano))
	seed = append(seed, stream.ID...)
	seed = append(seed, 0)
	if len(stream.Resource) > maxHashedResource {
		seed = append(seed, resource.digest[:]...)
	} else {
		seed = append(seed, stream.Resource...)
	}
	return sha256.Sum256(seed)
}
