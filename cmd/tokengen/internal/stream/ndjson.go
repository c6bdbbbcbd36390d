package stream

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Names of the events.
const (
	eventStart     = "start"
	eventScheduled = "scheduled"
	eventChunk     = "chunk"
	eventEnd       = "end"
)

// channelNames are the channels as events spell them.
var channelNames = [...]string{
	timeline.Content:   "content",
	timeline.Reasoning: "reasoning",
	timeline.ToolCall:  "tool_call",
}

type startEvent struct {
	Event        string     `json:"event"`
	StreamID     string     `json:"stream_id"`
	Time         string     `json:"time_unix_nano"`
	TraceID      string     `json:"trace_id,omitempty"`
	SpanID       string     `json:"span_id,omitempty"`
	ParentSpanID string     `json:"parent_span_id,omitempty"`
	Vantage      string     `json:"vantage,omitempty"`
	Resource     Attributes `json:"resource,omitempty"`
	Attributes   Attributes `json:"attributes,omitempty"`
}

type endEvent struct {
	Event        string     `json:"event"`
	StreamID     string     `json:"stream_id"`
	Time         string     `json:"time_unix_nano,omitempty"`
	Usage        *Usage     `json:"usage,omitempty"`
	FinishReason string     `json:"finish_reason,omitempty"`
	Error        string     `json:"error,omitempty"`
	Cancelled    bool       `json:"cancelled,omitempty"`
	Attributes   Attributes `json:"attributes,omitempty"`
}

// AppendNDJSON appends the part's events, one a line.
func (p Part) AppendNDJSON(dst []byte) ([]byte, error) {
	s := p.Stream
	id, err := json.Marshal(s.ID)
	if err != nil {
		return dst, fmt.Errorf("stream id %q: %w", s.ID, err)
	}
	if p.Start {
		if dst, err = appendLine(dst, startEvent{
			Event: eventStart, StreamID: s.ID, Time: decimal(s.Start),
			TraceID: hex.EncodeToString(s.TraceID), SpanID: hex.EncodeToString(s.SpanID),
			ParentSpanID: hex.EncodeToString(s.ParentSpanID),
			Vantage:      s.Vantage, Resource: s.resource(), Attributes: s.Attributes,
		}); err != nil {
			return dst, err
		}
	}
	if p.Scheduled {
		dst = append(appendHead(dst, eventScheduled, id, s.Scheduled), "}\n"...)
	}
	for _, c := range p.Chunks() {
		dst = appendChunk(dst, id, c)
	}
	if p.End {
		e := s.End
		return appendLine(dst, endEvent{
			Event: eventEnd, StreamID: s.ID, Time: decimal(e.Time), Usage: e.Usage,
			FinishReason: e.FinishReason, Error: e.Error, Cancelled: e.Cancelled, Attributes: e.Attributes,
		})
	}
	return dst, nil
}

func (s *Stream) resource() Attributes {
	if s.Resource == nil {
		return nil
	}
	return s.Resource.Attributes
}

// appendChunk writes by hand what there is most of.
func appendChunk(dst, id []byte, c Chunk) []byte {
	dst = appendHead(dst, eventChunk, id, c.Time)
	dst = append(dst, `,"tokens":`...)
	dst = strconv.AppendUint(dst, uint64(c.Tokens), 10)
	dst = append(dst, `,"channel":"`...)
	dst = append(dst, channelNames[c.Channel]...)
	dst = append(dst, '"')
	if c.Sequenced {
		dst = append(dst, `,"seq":`...)
		dst = strconv.AppendUint(dst, c.Sequence, 10)
	}
	return append(dst, "}\n"...)
}

func appendHead(dst []byte, event string, id []byte, time int64) []byte {
	dst = append(dst, `{"event":"`...)
	dst = append(dst, event...)
	dst = append(dst, `","stream_id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"time_unix_nano":"`...)
	dst = strconv.AppendInt(dst, time, 10)
	return append(dst, '"')
}

func appendLine(dst []byte, event any) ([]byte, error) {
	line, err := json.Marshal(event)
	if err != nil {
		return dst, err
	}
	return append(append(dst, line...), '\n'), nil
}

// decimal leaves out a time that is not known.
func decimal(unixNano int64) string {
	if unixNano == 0 {
		return ""
	}
	return strconv.FormatInt(unixNano, 10)
}
