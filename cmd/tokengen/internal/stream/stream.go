// Package stream describes streamed answers as tokengen plans, records and
// sends them: when each began, when its tokens arrived, and how it ended.
package stream

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Stream is one streamed answer. All times are Unix times in nanoseconds.
type Stream struct {
	ID       string
	Resource *Resource
	// TraceID is empty or 16 bytes, SpanID and ParentSpanID are empty or 8.
	TraceID, SpanID, ParentSpanID []byte
	// Vantage is empty where the recording does not say whose clock it is.
	Vantage    string
	Attributes Attributes
	Start      int64
	// Scheduled is zero where nobody knows when the engine took the request.
	Scheduled int64
	// Chunks are in the order in which they are sent.
	Chunks []Chunk
	// End is nil for a stream that nobody saw the end of.
	End *End
}

// Resource is what streams come from. Streams of one resource share a pointer.
type Resource struct {
	Attributes Attributes
}

// Attributes hold strings, bools, int64s, float64s, and []any and
// map[string]any of these.
type Attributes = map[string]any

// Chunk is a piece of an answer.
type Chunk struct {
	Time    int64
	Tokens  uint32
	Channel timeline.Channel
	// Sequence is the chunk's place in its stream, where Sequenced says so.
	Sequence  uint64
	Sequenced bool
}

// End is how a stream ended.
type End struct {
	// Time is zero for "with the last thing known of the stream".
	Time         int64
	Usage        *Usage
	FinishReason string
	// Error is not empty for a request that failed.
	Error      string
	Cancelled  bool
	Attributes Attributes
}

// Usage is the token counts that the service reports. Nil means not reported.
type Usage struct {
	InputTokens *uint64 `json:"input_tokens,omitempty"`
	// OutputTokens is all generated tokens, reasoning included.
	OutputTokens      *uint64 `json:"output_tokens,omitempty"`
	ReasoningTokens   *uint64 `json:"reasoning_tokens,omitempty"`
	CachedInputTokens *uint64 `json:"cached_input_tokens,omitempty"`
}

// LastTime returns the latest time that the stream tells.
func (s *Stream) LastTime() int64 {
	last := max(s.Start, s.Scheduled)
	for _, c := range s.Chunks {
		last = max(last, c.Time)
	}
	if s.End != nil {
		last = max(last, s.End.Time)
	}
	return last
}

// Shift moves the whole stream in time. Times that are not known stay so.
func (s *Stream) Shift(by time.Duration) {
	s.Start += int64(by)
	if s.Scheduled != 0 {
		s.Scheduled += int64(by)
	}
	for i := range s.Chunks {
		s.Chunks[i].Time += int64(by)
	}
	if s.End != nil && s.End.Time != 0 {
		s.End.Time += int64(by)
	}
}

// Cancelled returns the stream as it looks when its client goes away at a Unix
// time in nanoseconds: without what comes later.
func (s *Stream) Cancelled(at int64) *Stream {
	cut := *s
	at = max(at, s.Start)
	if cut.Scheduled > at {
		cut.Scheduled = 0
	}
	if late := slices.IndexFunc(s.Chunks, func(c Chunk) bool { return c.Time > at }); late >= 0 {
		cut.Chunks = s.Chunks[:late]
	}
	cut.End = &End{Time: at, Cancelled: true}
	return &cut
}
