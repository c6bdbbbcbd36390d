// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/selfmetrics"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// call is one model call: an exchange, or a response on a connection.
type call struct {
	exchange    *exchange
	trace       traceIdentity
	start       int64 // Unix time in nanoseconds
	startUnseen bool
	line        timeline.Timeline
	dropped     int64 // chunks beyond max_chunks_per_stream or max_memory_mib
	refusals    int64 // of the exchange's memory before the call
}

// Memory for the timeline is reserved for many chunks at a time.
const (
	blockChunks = 512
	blockBytes  = 4 << 10 // about what their times and channels take
)

// Values of error.type for failures that neither side reports.
const (
	errorUpstreamUnreachable = "upstream_unreachable"
	errorForeignUpgrade      = "unexpected_upgrade"
	errorUpstreamCut         = "upstream_cut"
	errorEmptyAnswer         = "empty_answer"
)

// Values of part for failures of the tap itself.
const (
	partMemory = "memory" // max_memory_mib was reached
	partPanic  = "panic"
)

// Chunk records a chunk that carries tokens. After the first chunk or event without room, it
// drops all: a timeline with a hole would show a false first token or a false stall.
func (c *call) Chunk(chunk llmstream.Chunk) {
	x, chunks := c.exchange, c.line.Len()
	if chunks >= x.receiver.cfg.MaxChunksPerStream || c.refused() ||
		chunks%blockChunks == 0 && !x.memory.Take(blockBytes) {
		c.dropped++
		return
	}
	c.line.Append(chunk.Time, uint32(min(max(chunk.Tokens, 1), timeline.MaxTokensPerChunk)), channelOf(chunk.Channels))
}

// refused reports whether data of the exchange found no room during the call.
func (c *call) refused() bool { return c.exchange.memory.Refusals() > c.refusals }

// channelOf returns the channel of a chunk in a timeline. Of several, the one counts that
// the user waits for.
func channelOf(c llmstream.Channels) timeline.Channel {
	switch {
	case c&(llmstream.Content|llmstream.Refusal) != 0:
		return timeline.Content
	case c&llmstream.ToolCall != 0:
		return timeline.ToolCall
	default:
		return timeline.Reasoning
	}
}

// End sends the span of the call.
func (c *call) End(o llmstream.Observation, end int64) {
	x := c.exchange
	defer x.memory.Give((c.line.Len() + blockChunks - 1) / blockChunks * blockBytes)
	telemetry, background := x.receiver.telemetry, context.Background()
	refused := c.refused()
	x.refusals = x.memory.Refusals()
	e := x.ending(&o, refused)
	telemetry.ReceiverTokenTapExchangesFinished.Add(background, 1, selfmetrics.Label("outcome", e.outcome))
	if c.dropped > 0 {
		telemetry.ReceiverTokenTapChunksDropped.Add(background, c.dropped)
	}
	if o.Evicted {
		telemetry.ReceiverTokenTapResponsesEvicted.Add(background, 1)
	}
	x.count(e.unparsed)
	if x.panicked.Load() { // which is counted once for the exchange
		e.unparsed = append(e.unparsed, partPanic)
	}
	x.receiver.delivery.send(c.span(&o, e, end))
}

// ending is how a call ended.
type ending struct {
	outcome string
	// kind is the error.type, or empty.
	kind string
	// cut is set if the receiver ended the call or its observation.
	cut bool
	// unparsed says what could not be read.
	unparsed []string
}

func (x *exchange) ending(o *llmstream.Observation, refused bool) (e ending) {
	e.unparsed = x.unparsed(o, refused)
	failed := x.status >= http.StatusBadRequest
	switch {
	case o.Error != "" && (!failed || o.Error != llmstream.ErrorMessageOnly):
		e.outcome, e.kind = names.OutcomeError, o.Error
	case failed:
		e.outcome, e.kind = names.OutcomeError, strconv.Itoa(x.status)
	case o.Cancelled:
		e.outcome = names.OutcomeCancelled
	case o.Ended:
		e.outcome = names.OutcomeSuccess
	case o.Evicted, x.expired, x.receiver.closing.Load():
		e.outcome, e.cut = names.OutcomeIncomplete, true
	case x.clientGone():
		e.outcome = names.OutcomeCancelled
	case x.status == 0:
		e.outcome, e.kind = names.OutcomeError, errorUpstreamUnreachable
		if _, broken := x.copied.state(); broken != nil {
			e.kind = refusalOfBody(broken).reason
		} else if errors.Is(x.upstreamError, errForeignUpgrade) {
			e.kind = errorForeignUpgrade
		}
	case x.complete && (e.unparsed != nil || x.panicked.Load()): // the end may be among what could not be read
		e.outcome = names.OutcomeSuccess
	case x.complete && !x.received && x.upgraded == nil:
		e.outcome, e.kind = names.OutcomeError, errorEmptyAnswer
	default:
		e.outcome, e.kind = names.OutcomeIncomplete, errorUpstreamCut
	}
	return e
}

// clientGone reports whether the client closed first.
func (x *exchange) clientGone() bool {
	_, broken := x.copied.state() // then the upstream's error may be that of the request's body
	return x.clientClosed ||
		x.request.Context().Err() != nil && (x.upstreamError == nil || broken != nil || errors.Is(x.upstreamError, context.Canceled))
}

// unparsed returns what could not be read of an answer. refused says whether data found no room.
func (x *exchange) unparsed(o *llmstream.Observation, refused bool) (parts []string) {
	for _, part := range []struct {
		name  string
		found bool
	}{
		{"content_encoding", x.unknownContent},
		{"corrupt", o.Unparsed.Corrupt > 0},
		{"format", !x.expired && x.received && x.complete && o.Format == "" && o.Error == "" && !o.Unparsed.Any() && !x.unknownContent && !refused && !x.panicked.Load()},
		{"invalid", o.Unparsed.Invalid > 0},
		{partMemory, refused},
		{"too_long", o.Unparsed.TooLong > 0 && !refused},
	} {
		if part.found {
			parts = append(parts, part.name)
		}
	}
	return parts
}

// count counts what could not be read of an answer.
func (x *exchange) count(unparsed []string) {
	for _, part := range unparsed {
		x.receiver.telemetry.ReceiverTokenTapUnparsed.Add(context.Background(), 1, selfmetrics.Label("part", part))
	}
}
