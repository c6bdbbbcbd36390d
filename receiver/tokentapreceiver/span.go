// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// usualAttributes is about the number of attributes of an answer with everything.
const usualAttributes = 24

// span returns the span of the call.
func (c *call) span(o *llmstream.Observation, e ending, end int64) ptrace.Span {
	span := ptrace.NewSpan()
	span.SetKind(ptrace.SpanKindClient)
	c.trace.put(span)
	span.SetStartTimestamp(pcommon.Timestamp(c.start))
	span.SetEndTimestamp(pcommon.Timestamp(end))
	if e.kind != "" {
		span.Status().SetCode(ptrace.StatusCodeError)
	}

	own := span.Attributes()
	own.EnsureCapacity(len(c.decoding.receiver.cfg.AttributesFromHeaders) + usualAttributes)
	c.decoding.putHeaders(own)
	c.decoding.putHTTP(own, e)
	c.decoding.putModelCall(own, o)
	c.putTimings(own, o, e)
	span.SetName(attributes.SpanName(own))
	return span
}

func (d *decoding) putHeaders(attributes pcommon.Map) {
	for header, attribute := range d.receiver.cfg.AttributesFromHeaders {
		putText(attributes, attribute, d.asked.request.Header.Get(header))
	}
}

func (d *decoding) putHTTP(attributes pcommon.Map, e ending) {
	attributes.PutStr(names.HTTPRequestMethod, d.asked.request.Method)
	if d.answered.status != 0 {
		attributes.PutInt(names.HTTPResponseStatusCode, int64(d.answered.status))
	}
	attributes.PutStr(names.ServerAddress, d.route.endpoint.Hostname())
	attributes.PutInt(names.ServerPort, portOf(d.route.endpoint))
	putText(attributes, names.ErrorType, names.Category(e.kind))
}

func portOf(endpoint *url.URL) int64 {
	if port, err := strconv.ParseInt(endpoint.Port(), 10, 64); err == nil {
		return port
	}
	if endpoint.Scheme == "http" {
		return 80
	}
	return 443
}

func (d *decoding) putModelCall(attributes pcommon.Map, o *llmstream.Observation) {
	format := o.Format
	if o.Guessed {
		format = "" // the path is one of several services
	} else if format == "" {
		format = d.asked.facts.Format
	}
	operation, model := d.asked.facts.Operation, d.asked.facts.Model
	if operation == "" {
		operation = "chat"
	}
	if model == "" {
		model = o.Model
	}
	attributes.PutStr(names.GenAIOperationName, operation)
	putText(attributes, names.GenAIProviderName, providerOf(d.route.endpoint.Hostname(), format))
	putText(attributes, names.GenAIRequestModel, model)
	putText(attributes, names.GenAIResponseModel, o.Model)
	putText(attributes, names.GenAIResponseID, o.ResponseID)
	putText(attributes, names.GenAIOutputType, d.asked.facts.Output)
	attributes.PutBool(names.GenAIRequestStream, d.asked.facts.Stream || o.Streamed) // the request's body may be unknown

	usage := o.Usage()
	putCount(attributes, names.GenAIInputTokens, usage.Input)
	putCount(attributes, names.GenAIOutputTokens, usage.Output)
	putCount(attributes, names.GenAIReasoningTokens, usage.Reasoning)
	putCount(attributes, names.GenAICacheReadInputTokens, usage.CacheRead)
	putCount(attributes, names.GenAICacheWriteInputTokens, usage.CacheWrite)
	for m, counts := range byModality {
		putModality(attributes, counts.input, usage.InputBy[m])
		putModality(attributes, counts.output, usage.OutputBy[m])
		putModality(attributes, counts.cached, usage.CacheReadBy[m])
	}
	for i, reason := range o.FinishReasons {
		o.FinishReasons[i] = names.Category(reason)
	}
	putTexts(attributes, names.GenAIFinishReasons, o.FinishReasons)
}

// byModality has the numbers of each llmstream.Modality.
var byModality = [llmstream.Modalities]struct{ input, output, cached numbers.ID }{
	llmstream.TextTokens:  {numbers.TextInputTokens, numbers.TextOutputTokens, numbers.TextCachedInputTokens},
	llmstream.ImageTokens: {numbers.ImageInputTokens, numbers.ImageOutputTokens, numbers.ImageCachedInputTokens},
	llmstream.AudioTokens: {numbers.AudioInputTokens, numbers.AudioOutputTokens, numbers.AudioCachedInputTokens},
}

// putTimings writes what token_latency reads.
func (c *call) putTimings(attributes pcommon.Map, o *llmstream.Observation, e ending) {
	attributes.PutStr(names.Source, names.SourceTokenTap)
	untimed := c.untimedBecause(o, e)
	if untimed == names.UntimedReplayed || untimed == names.UntimedWhole {
		c.line.Reset()
	}
	observed := source.TokenStream{
		Vantage: timeline.VantageGateway, Outcome: e.outcome, StartUnseen: c.startUnseen, ChunksDropped: c.dropped, Cut: e.cut, Interrupted: o.Interrupted,
	}
	observed.Write(attributes, c.line.AppendBinary(nil, c.start))
	putTexts(attributes, names.Unparsed, e.unparsed)
	putText(attributes, names.Untimed, untimed)
	if c.line.Tokens() > 0 && !o.Counted {
		attributes.PutBool(names.Uncounted, true)
	}
	putDuration(attributes, numbers.QueueDuration.Attribute(), o.Timings.Queue)
	putDuration(attributes, numbers.PrefillDuration.Attribute(), o.Timings.Prefill)
	putDuration(attributes, numbers.DecodeDuration.Attribute(), o.Timings.Decode)
	putDuration(attributes, numbers.AudioDuration.Attribute(), o.AudioDuration)
	putCount(attributes, numbers.SpeculativeAcceptedTokens.Attribute(), o.AcceptedTokens)
	putCount(attributes, numbers.SpeculativeDraftTokens.Attribute(), o.DraftTokens)
	if c.line.Tokens() > 0 && !c.startUnseen {
		putDuration(attributes, numbers.NetworkDuration.Attribute(), networkOf(time.Duration(c.firstToken-c.start), &o.Timings))
	}
}

// untimedBecause says why the chunks of an answer do not show when its tokens were generated. It is
// empty if they do, or if there was no answer. Those of audio may have times nevertheless.
func (c *call) untimedBecause(o *llmstream.Observation, e ending) string {
	switch {
	case e.outcome == names.OutcomeSuccess && o.TokenChunks == 0 && e.unparsed == nil:
		return names.UntimedTokenless
	case o.Replayed:
		return names.UntimedReplayed
	case o.Format != "" && !o.Streamed:
		return names.UntimedWhole
	case c.line.Tokens() == 0 && o.Unparsed.TooLong > 0: // that may have been the first token
		return names.UntimedUnparsed
	default:
		return ""
	}
}

// networkOf returns the part of the time to first token that the service did not see.
func networkOf(firstToken time.Duration, service *llmstream.Timings) (network optional.Value[time.Duration]) {
	inService := service.FirstToken
	if !inService.Known && service.Queue.Known && service.Prefill.Known {
		inService = optional.Of(service.Queue.Value + service.Prefill.Value)
	}
	if inService.Known && inService.Value <= firstToken {
		network = optional.Of(firstToken - inService.Value)
	}
	return network
}

// putText puts a text from outside, which may be long and not UTF-8: exporters refuse a
// whole batch for that.
func putText(attributes pcommon.Map, key, text string) {
	if text != "" {
		attributes.PutStr(key, names.CleanLabel(text))
	}
}

func putTexts(attributes pcommon.Map, key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	list := attributes.PutEmptySlice(key)
	for _, text := range texts {
		list.AppendEmpty().SetStr(names.CleanLabel(text))
	}
}

func putCount(attributes pcommon.Map, key string, count optional.Value[int64]) {
	if count.Known {
		attributes.PutInt(key, count.Value)
	}
}

func putModality(attributes pcommon.Map, id numbers.ID, n int64) {
	if n > 0 {
		attributes.PutInt(id.Attribute(), n)
	}
}

func putDuration(attributes pcommon.Map, key string, d optional.Value[time.Duration]) {
	if d.Known {
		attributes.PutDouble(key, d.Value.Seconds())
	}
}
