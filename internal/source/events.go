// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Names of the events that mark a chunk of tokens, a frame, the first token or the last token.
var (
	tokenEvents       = []string{names.TokenGenerated}
	openLLMetryFrames = []string{names.CompletionChunk, names.LLMCompletionChunk}
	otherFrames       = []string{names.ContentChunk, names.GenAIStreamChunk, "new_token"}
	firstTokens       = []string{"gen_ai.first_token", "first_token", "llm.first_token"}
	lastTokens        = []string{"last_token", "llm.last_token"}
)

type eventKind uint8

const (
	chunk eventKind = iota + 1
	frame
	firstToken
	lastToken
)

var eventKinds = func() map[string]eventKind {
	all := map[string]eventKind{}
	for kind, lists := range map[eventKind][][]string{
		chunk: {tokenEvents}, frame: {openLLMetryFrames, otherFrames}, firstToken: {firstTokens}, lastToken: {lastTokens},
	} {
		for _, list := range lists {
			for _, name := range list {
				all[name] = kind
			}
		}
	}
	return all
}()

// readEvents reads the events of the span. It collects chunks and frames in the given timeline, which
// must not change while the observation is in use.
func (o *Observation) readEvents(r *reader, span ptrace.Span, frames *timeline.Timeline) {
	for _, event := range span.Events().All() {
		switch eventKinds[event.Name()] {
		case chunk:
			if tokens := o.tokensOf(event); tokens > 0 {
				frames.Append(int64(event.Timestamp()), tokens, timeline.Content)
			}
		case frame:
			o.Request.Frames = true
			frames.Append(int64(event.Timestamp()), 1, timeline.Content)
		case firstToken:
			o.setFirstTokenEvent(span, event, false)
		case lastToken:
			o.Request.LastToken = optional.Of(sinceStart(span, event))
		default:
			if r.event != nil {
				r.event(o, span, event)
			}
		}
	}
	o.Request.EventsDropped = span.DroppedEventsCount() > 0
	if frames.Len() == 0 {
		return
	}
	// SDKs drop the oldest events.
	o.Request.FirstChunksDropped = int64(span.DroppedEventsCount())
	o.Request.Frames = o.Request.Frames || o.Request.EventsDropped
	o.Timeline = frames.WalkFrom(int64(span.StartTimestamp()))
}

// tokensOf returns the number of tokens of a chunk: that of its attribute, or 1 if it has none that can
// be read.
func (o *Observation) tokensOf(event ptrace.SpanEvent) uint32 {
	v, ok := event.Attributes().Get(names.EventTokens)
	if !ok {
		return 1
	}
	n, ok := attributes.Integer(v)
	if !ok || n < 0 || n > timeline.MaxTokensPerChunk {
		o.Unusable++
		return 1
	}
	return uint32(n)
}
