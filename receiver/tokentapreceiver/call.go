// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"cmp"
	"context"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// call is one model call: an exchange, or a response on a connection.
type call struct {
	decoding    *decoding
	trace       traceIdentity
	start       int64 // Unix time in nanoseconds
	startUnseen bool
	line        timeline.Timeline
	firstToken  int64  // when the first token in the timeline arrived, like start; 0 before
	lastToken   int64  // when a token or audio last arrived, like start; 0 before
	dropped     int64  // chunks beyond a limit
	limit       string // the first limit that dropped a chunk
	refusals    int64  // of the memory before the call
}

// Memory for the timeline is reserved for many chunks at a time.
const (
	blockChunks = 512
	blockBytes  = 4 << 10 // about what their times and channels take
)

// Chunk records a chunk that carries tokens, audio or both. After the first chunk or event without room, and after an event
// that was too long, it drops all: a timeline with a hole would show a false first token or a false stall.
func (c *call) Chunk(chunk llmstream.Chunk) {
	c.lastToken = chunk.Time
	c.decoding.request.token(chunk.Time)
	if chunk.Channels != llmstream.Audio && c.append(chunk, uint32(min(max(chunk.Tokens, 1), timeline.MaxTokensPerChunk)), channelOf(chunk.Channels)) {
		c.firstToken = cmp.Or(c.firstToken, chunk.Time)
	}
	if chunk.Channels&llmstream.Audio != 0 {
		c.append(chunk, 0, timeline.Audio)
	}
}

// append appends to the timeline, and reports whether there was room.
func (c *call) append(chunk llmstream.Chunk, tokens uint32, channel timeline.Channel) bool {
	if limit := c.reached(chunk.AfterGap); limit != "" {
		c.limit = cmp.Or(c.limit, limit)
		c.dropped++
		return false
	}
	c.line.Append(chunk.Time, tokens, channel)
	return true
}

// reached reserves memory for a chunk, and returns the limit that leaves no room for it, or "". afterGap is set
// after an event that was too long or found no room.
func (c *call) reached(afterGap bool) string {
	d, chunks := c.decoding, c.line.Len()
	switch {
	case c.refused():
		return limitMemory
	case afterGap:
		return limitEventBytes
	case chunks >= d.receiver.cfg.MaxChunksPerStream:
		return limitChunks
	case chunks%blockChunks == 0 && !d.memory.Take(blockBytes):
		return limitMemory
	}
	return ""
}

// refused reports whether data of the exchange found no room during the call.
func (c *call) refused() bool { return c.decoding.memory.Refusals() > c.refusals }

// channelOf returns the channel of a chunk with tokens in a timeline. Of several, the one counts that
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
	d := c.decoding
	defer d.memory.Give((c.line.Len() + blockChunks - 1) / blockChunks * blockBytes)
	telemetry, background := d.receiver.telemetry, context.Background()
	refused := c.refused()
	d.refusals = d.memory.Refusals()
	e := d.ending(&o, refused)
	telemetry.ReceiverTokenTapExchangesFinished.Add(background, 1, diagnostics.Label("outcome", e.outcome))
	if c.dropped > 0 {
		telemetry.ReceiverTokenTapChunksDropped.Add(background, c.dropped, diagnostics.Label("limit", c.limit))
	}
	if e.limit != "" {
		telemetry.ReceiverTokenTapExchangesCut.Add(background, 1, diagnostics.Label("limit", e.limit))
	}
	d.count(e.unparsed)
	if d.panicked.Load() { // which is counted once for the exchange
		e.unparsed = append(e.unparsed, partPanic)
	}
	d.receiver.delivery.send(c.span(&o, e, end))
}
