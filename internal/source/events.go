package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Events that other instrumentations mark frames with, and single tokens.
var (
	openLLMetryFrames = []string{names.LogCompletionChunk, names.LogCompletionChunkOfLLM}
	otherFrames       = []string{names.LogContentChunk, names.LogStreamedChunk, "new_token"}
	firstTokens       = []string{"gen_ai.first_token", "first_token", "llm.first_token"}
	lastTokens        = []string{"last_token", "llm.last_token"}
)

type eventKind uint8

const (
	frame eventKind = iota + 1
	firstToken
	lastToken
)

var eventKinds = func() *table[eventKind] {
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
	return newTable(all)
}()

// readEvents reads the events of a span that has some.
func (r *Observer) readEvents(reader *reader, span ptrace.Span) {
	o := &r.observation
	r.frames.Reset()
	for _, event := range span.Events().All() {
		var kind eventKind
		if known := eventKinds.get(event.Name()); known != nil {
			kind = *known
		}
		switch kind {
		case frame:
			r.frames.Append(int64(event.Timestamp()), 1, timeline.Content)
		case firstToken:
			o.firstTokenEvent(span, event, false)
		case lastToken:
			o.Request.LastToken = latency.Known(sinceStart(span, event))
		default:
			if reader.event != nil {
				reader.event(o, span, event)
			}
		}
	}
	if r.frames.Len() == 0 {
		return
	}
	o.Request.Frames = true
	// The SDKs drop the oldest.
	o.Request.FirstChunksDropped = int64(span.DroppedEventsCount())
	o.Timeline = r.frames.WalkFrom(int64(span.StartTimestamp()))
	if r.frames.Size() > keepFrames {
		r.frames = timeline.Timeline{}
	}
}

// keepFrames bounds the memory that stays for the next span's frames, in bytes.
const keepFrames = 64 << 10

func sinceStart(span ptrace.Span, event ptrace.SpanEvent) time.Duration {
	return time.Duration(event.Timestamp() - span.StartTimestamp())
}

// atEnd is how close to the span's end an event is taken to be stamped there:
// some instrumentations add their events only when they end the span.
const atEnd = time.Millisecond

// firstTokenEvent takes an event that says when the first token came. Where events
// were dropped, the first of its kind may be among them.
func (o *Observation) firstTokenEvent(span ptrace.Span, event ptrace.SpanEvent, estimated bool) {
	first := &o.Request.FirstToken[latency.Event]
	after := sinceStart(span, event)
	if first.Known || span.DroppedEventsCount() > 0 || o.Request.Duration-after <= atEnd {
		return
	}
	*first = latency.Milestone{After: after, Known: true, Estimated: estimated}
}
