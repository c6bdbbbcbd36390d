package recording

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// event is one line, whatever it tells. Fields that hold text are not read.
type event struct {
	Event        string            `json:"event"`
	StreamID     string            `json:"stream_id"`
	TimeUnixNano unixNano          `json:"time_unix_nano"`
	Time         string            `json:"time"`
	TraceID      string            `json:"trace_id"`
	SpanID       string            `json:"span_id"`
	ParentSpanID string            `json:"parent_span_id"`
	Vantage      string            `json:"vantage"`
	Resource     stream.Attributes `json:"resource"`
	Attributes   stream.Attributes `json:"attributes"`
	Tokens       *int64            `json:"tokens"`
	Channel      string            `json:"channel"`
	Sequence     *uint64           `json:"seq"`
	Usage        *stream.Usage     `json:"usage"`
	FinishReason string            `json:"finish_reason"`
	Error        string            `json:"error"`
	Cancelled    bool              `json:"cancelled"`
}

// unixNano reads an integer or a decimal string.
type unixNano int64

func (t *unixNano) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("time_unix_nano %s is not a Unix time in whole nanoseconds", b)
	}
	*t = unixNano(n)
	return nil
}

var channels = map[string]timeline.Channel{
	"":          timeline.Content,
	"content":   timeline.Content,
	"reasoning": timeline.Reasoning,
	"tool_call": timeline.ToolCall,
}

// events reads the NDJSON that a service posts, strictly: the events of a stream
// come after its start and before its end.
type events struct {
	byID      map[string]*stream.Stream
	order     []*stream.Stream
	resources map[string]*stream.Resource // by their JSON
}

func newEvents() *events {
	return &events{byID: map[string]*stream.Stream{}, resources: map[string]*stream.Resource{}}
}

func (r *events) streams() []*stream.Stream { return r.order }

func (r *events) read(line []byte) error {
	var e event
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber() // an int64 attribute does not survive a float64
	if err := decoder.Decode(&e); err != nil {
		return fmt.Errorf("not an event: %w", err)
	}
	if e.StreamID == "" {
		return errors.New("the event has no stream_id")
	}
	at, err := e.unixNano()
	if err != nil {
		return err
	}
	if at == 0 && e.Event != "end" {
		return errors.New("the event has no time: give time_unix_nano or time")
	}
	if e.Event == "start" {
		return r.start(&e, at)
	}
	s, ok := r.byID[e.StreamID]
	if !ok {
		return fmt.Errorf("stream %q has not started", e.StreamID)
	}
	if s.End != nil {
		return fmt.Errorf("stream %q has already ended", e.StreamID)
	}
	switch e.Event {
	case "scheduled":
		s.Scheduled = at
	case "chunk":
		return e.chunk(s, at)
	case "end":
		s.End = e.end(at)
	default:
		return fmt.Errorf("unknown event %q: it is one of start, scheduled, chunk, end", e.Event)
	}
	return nil
}

func (e *event) unixNano() (int64, error) {
	if e.Time == "" || e.TimeUnixNano != 0 {
		return int64(e.TimeUnixNano), nil
	}
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	if err != nil {
		return 0, fmt.Errorf("time %q is not RFC 3339", e.Time)
	}
	if at.Before(time.Unix(0, 0)) || at.After(time.Unix(0, math.MaxInt64)) {
		return 0, fmt.Errorf("time %q is out of range", e.Time)
	}
	return at.UnixNano(), nil
}

func (r *events) start(e *event, at int64) error {
	if _, ok := r.byID[e.StreamID]; ok {
		return fmt.Errorf("stream %q starts a second time", e.StreamID)
	}
	s := &stream.Stream{
		ID: e.StreamID, Start: at, Vantage: e.Vantage,
		Attributes: plainAttributes(e.Attributes),
		Resource:   r.resource(e.Resource),
	}
	var err error
	if s.TraceID, err = id("trace_id", e.TraceID, 16); err != nil {
		return err
	}
	if s.SpanID, err = id("span_id", e.SpanID, 8); err != nil {
		return err
	}
	if s.ParentSpanID, err = id("parent_span_id", e.ParentSpanID, 8); err != nil {
		return err
	}
	r.byID[s.ID] = s
	r.order = append(r.order, s)
	return nil
}

func (e *event) chunk(s *stream.Stream, at int64) error {
	c := stream.Chunk{Time: at, Tokens: 1}
	if e.Tokens != nil {
		if *e.Tokens < 0 || *e.Tokens > timeline.MaxTokensPerChunk {
			return fmt.Errorf("tokens is %d: it is between 0 and %d", *e.Tokens, timeline.MaxTokensPerChunk)
		}
		c.Tokens = uint32(*e.Tokens)
	}
	var ok bool
	if c.Channel, ok = channels[e.Channel]; !ok {
		return fmt.Errorf("unknown channel %q: it is one of content, reasoning, tool_call", e.Channel)
	}
	if e.Sequence != nil {
		c.Sequence, c.Sequenced = *e.Sequence, true
	}
	s.Chunks = append(s.Chunks, c)
	return nil
}

func (e *event) end(at int64) *stream.End {
	return &stream.End{
		Time: at, Usage: e.Usage, FinishReason: e.FinishReason, Error: e.Error, Cancelled: e.Cancelled,
		Attributes: plainAttributes(e.Attributes),
	}
}

func id(key, text string, size int) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != size {
		return nil, fmt.Errorf("%s %q is not %d hex digits", key, text, 2*size)
	}
	return b, nil
}

// resource returns the same pointer for equal attributes.
func (r *events) resource(attributes stream.Attributes) *stream.Resource {
	if len(attributes) == 0 {
		return nil
	}
	key, err := json.Marshal(attributes)
	if err != nil { // what was just decoded from JSON always encodes
		panic(err)
	}
	known, ok := r.resources[string(key)]
	if !ok {
		known = &stream.Resource{Attributes: plainAttributes(attributes)}
		r.resources[string(key)] = known
	}
	return known
}

// plainAttributes turns the numbers of decoded JSON into int64s and float64s, in place.
func plainAttributes(attributes stream.Attributes) stream.Attributes {
	for key, v := range attributes {
		attributes[key] = plain(v)
	}
	return attributes
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil { // past the range of a double
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case map[string]any:
		return plainAttributes(v)
	default:
		return v
	}
}
