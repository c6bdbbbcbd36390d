// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Names of the events that mark a frame, the first token or the last token.
var (
	openLLMetryFrames = []string{names.LogCompletionChunk, names.LogLLMCompletionChunk}
	otherFrames       = []string{names.LogContentChunk, names.LogGenAIStreamChunk, "new_token"}
	firstTokens       = []string{"gen_ai.first_token", "first_token", "llm.first_token"}
	lastTokens        = []string{"last_token", "llm.last_token"}
)

type eventKind uint8

const (
	frame eventKind = iota + 1
	firstToken
	lastToken
)

var eventKinds = func() map[string]eventKind {
	all := map[string]eventKind{}
	for kind, lists := range map[eventKind][][]string{
		frame: {openLLMetryFrames, otherFrames}, firstToken: {firstTokens}, lastToken: {lastTokens},
	} {
		for _, list := range lists {
			for _, name := range list {
				all[name] = kind
			}
		}
	}
	return all
}()

// readEvents reads the events of the span. It collects frames in the given timeline, which must not
// change while the observation is in use.
func (o *Observation) readEvents(r *reader, span ptrace.Span, frames *timeline.Timeline) {
	for _, event := range span.Events().All() {
		switch eventKinds[event.Name()] {
		case frame:
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
	o.Request.Frames = true
	// SDKs drop the oldest events.
	o.Request.FirstChunksDropped = int64(span.DroppedEventsCount())
	o.Timeline = frames.WalkFrom(int64(span.StartTimestamp()))
}
