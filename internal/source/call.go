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
	openLLMetryFrames = []string{"gen_ai.content.completion.chunk", "llm.content.completion.chunk"}
	otherFrames       = []string{"gen_ai.content.chunk", "gen_ai.stream.chunk", "new_token"}
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
	r.packed = r.frames.AppendBinary(r.packed[:0], int64(span.StartTimestamp()))
	o.Timeline, _ = timeline.Decode(r.packed) // cannot fail: it was packed right here
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

// firstTokenEvent takes an event that says when the first token came.
func (o *Observation) firstTokenEvent(span ptrace.Span, event ptrace.SpanEvent, estimated bool) {
	first := &o.Request.FirstToken[latency.Event]
	after := sinceStart(span, event)
	if first.Known || o.Request.Duration-after <= atEnd {
		return
	}
	*first = latency.Milestone{After: after, Known: true, Estimated: estimated}
}

// firstChunkAt takes the absolute time of the first chunk.
func (o *Observation) firstChunkAt(unixNano latency.Optional[int64], estimated bool) {
	if !unixNano.Known {
		return
	}
	after := time.Duration(unixNano.Value - int64(o.start))
	o.Request.FirstToken[latency.AbsoluteTime] = latency.Milestone{After: after, Known: true, Estimated: estimated}
	o.tell(names.TimeToFirstChunk, Told{Duration: after, Rank: absoluteRank})
}

// absoluteRank is that of a time to the first chunk that comes of two absolute
// times.
const absoluteRank = lastRank

// conclude makes a request of what was taken from the span's attributes and
// events.
func (o *Observation) conclude(reader *reader) {
	o.Request.TokensUnwatched = true
	chunk := &o.Standard[names.TimeToFirstChunk]
	if o.isWhole(reader, chunk) {
		o.forgetTokens()
		return
	}
	if chunk.Known && !o.Request.FirstToken[latency.RelativeTime].Known && chunk.Rank != absoluteRank {
		o.Request.FirstToken[latency.RelativeTime] = latency.Milestone{
			After: chunk.Duration, Known: true, Estimated: o.firstChunkIsFrame,
		}
	}
	o.rejectImpossibleChunk()
}

// rejectImpossibleChunk forgets a time to the first chunk that cannot be true, so
// that it does not become a standard attribute.
func (o *Observation) rejectImpossibleChunk() {
	if chunk := &o.Standard[names.TimeToFirstChunk]; chunk.Duration < 0 || chunk.Duration > o.Request.Duration {
		*chunk = Told{}
	}
}

// isWhole reports that the answer came as a whole, so that its tokens have no
// times, whatever the span says. By the conventions a call that does not say
// that it streams does not; yet some that do never say so. What tells them apart
// is a first chunk before the end.
func (o *Observation) isWhole(reader *reader, chunk *Told) bool {
	switch {
	case o.Vantage == names.VantageEngine: // it makes one token after the other all the same
		return false
	case o.streaming != unsaid:
		return o.streaming == no
	case reader.streamingIsSaid:
		return true
	default:
		rest := o.Request.Duration - chunk.Duration
		return chunk.Known && 0 <= rest && rest <= atEnd
	}
}

// forgetTokens takes back all times of tokens.
func (o *Observation) forgetTokens() {
	o.Standard[names.TimeToFirstChunk] = Told{}
	o.Request.FirstToken = [latency.Trusts]latency.Milestone{}
	o.Request.LastToken = latency.Optional[time.Duration]{}
	o.Request.Chunks = latency.ReportedGaps{}
	o.Request.Frames, o.Request.FirstChunksDropped = false, 0
	o.Timeline = timeline.Walk{}
}
