// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"slices"
	"sync"
)

// Response takes what one response of a connection reports.
type Response interface {
	Chunk(c Chunk)
	// End is called once, with the Unix time in nanoseconds at which the response ended.
	End(o Observation, time int64)
}

// The responses of a connection that are open, and the requests that wait for one, are
// bounded: the oldest gives way.
const (
	maxResponses = 16
	maxRequests  = 16
)

// Connection reads both directions of a WebSocket connection on which a service gives
// responses: OpenAI's Realtime and Responses APIs, and Gemini Live. A response starts with
// the client's request for it, or when the server commits what the client said.
//
// WriteServer and End must not be called concurrently. WriteClient may be called beside
// them; for a start before its response, call it before the bytes are forwarded.
type Connection struct {
	begin          func(start int64, seen bool) Response
	server, client webSocketFramer

	format    Format
	read      reader
	tried     int
	index     int64 // of the server's next message
	time      int64
	committed int64 // when the server last committed the client's input, or 0
	open      []*response
	unparsed  Unparsed // since the last response ended

	clientTime int64

	mu       sync.Mutex // guards what the client's side says
	model    string
	requests []request
}

// response is an open response.
type response struct {
	record
	out Response
}

// request is a client's request for a response.
type request struct {
	time int64
	id   string // of the client's event, or empty
}

// NewConnection returns a decoder of a connection whose upgrade was accepted. It calls
// begin for each response, with the Unix time in nanoseconds at which it started. If seen
// is false, the start is unknown, and start is the time of the response's first message.
func NewConnection(exchange Exchange, limits Limits, begin func(start int64, seen bool) Response) *Connection {
	extensions := exchange.Header.Get("Sec-WebSocket-Extensions")
	c := &Connection{
		begin:  begin,
		server: newWebSocketFramer(limits.EventBytes, false, extensions),
		client: newWebSocketFramer(limits.EventBytes, true, extensions),
	}
	if format := pathFacts(exchange.Path, exchange.RawQuery).format; hasResponses(format) {
		c.format, c.read = format, newReader(format)
	}
	return c
}

// Recognised reports whether the connection is one of a known service.
func (c *Connection) Recognised() bool { return c.format != "" }

// hasResponses reports whether a format is one of connections.
func hasResponses(format Format) bool {
	return format == OpenAIRealtime || format == OpenAIResponses || format == GeminiLive
}

// WriteServer takes bytes that the server sent after its upgrade, which were read at the
// time in Unix nanoseconds.
func (c *Connection) WriteServer(p []byte, time int64) {
	c.time = time
	c.server.write(p, (*serverMessages)(c))
}

// WriteClient takes bytes that the client sent.
func (c *Connection) WriteClient(p []byte, time int64) {
	c.clientTime = time
	c.client.write(p, (*clientMessages)(c))
}

// End says that the connection ended, and with it all open responses.
func (c *Connection) End(time int64) {
	c.time = time
	c.server.end((*serverMessages)(c))
	for c.format != "" {
		asked, ok := c.take(nil)
		if !ok {
			break
		}
		c.start(asked.time, true)
	}
	for len(c.open) > 0 {
		c.end(0)
	}
}

// serverMessages takes what the server sent.
type serverMessages Connection

func (s *serverMessages) tooLong() { s.index++; s.unparsed.TooLong++ }
func (s *serverMessages) invalid() { s.unparsed.Invalid++ }
func (s *serverMessages) corrupt() { s.unparsed.Corrupt++ }
func (s *serverMessages) tail()    { s.unparsed.Tail = true }

func (s *serverMessages) event(e event) {
	c := (*Connection)(s)
	index := c.index
	c.index++
	if c.read == nil && c.tried == maxTries {
		return
	}
	v, ok := parse(e.data)
	if !ok {
		c.unparsed.Invalid++
		return
	}
	if c.read == nil {
		if c.tried++; !hasResponses(shapeOf(e, v)) {
			return
		}
		c.format = shapeOf(e, v)
		c.read = newReader(c.format)
	}
	at := c.responseOf(v)
	if at < 0 {
		return
	}
	r := c.open[at]
	r.observation.Events++
	r.begin()
	c.read(e, v, &r.record)
	if chunk, ok := r.take(); ok {
		chunk.Time, chunk.Index = c.time, index
		r.out.Chunk(chunk)
	}
	if r.observation.Ended {
		c.end(at)
	}
}

// responseOf returns the position of the response that a message belongs to, which it
// may begin, or -1.
func (c *Connection) responseOf(v value) int {
	kind, id := v.get("type"), v.get("response_id")
	switch {
	case c.format == GeminiLive:
		content, call := v.get("serverContent"), v.get("toolCall")
		if len(c.open) > 0 && (content != nil || call != nil || v.get("usageMetadata") != nil) {
			return 0
		}
		output := call != nil || content.get("modelTurn") != nil || content.get("outputTranscription") != nil
		if !output && (content == nil || !c.waiting()) {
			return -1 // such as a transcription of what the user said
		}
	case bytes.HasPrefix(kind.raw(), []byte("response.")):
		if id == nil {
			id = v.path("response", "id")
		}
		if at := c.find(id); at >= 0 {
			return at
		}
	case kind.is("error"):
		failure := v.get("error")
		asked, ok := c.take(failure.get("event_id"))
		if !ok {
			return -1 // it answers no request for a response
		}
		at := c.start(asked.time, true)
		c.open[at].fail(errorType(failure).name())
		c.open[at].end()
		return at
	case kind.is("input_audio_buffer.committed"):
		c.committed = c.time
		return -1
	default:
		if model := v.path("session", "model"); model.hasText() {
			c.mu.Lock()
			c.model = model.name()
			c.mu.Unlock()
		}
		return -1
	}
	start, seen := c.time, false
	if asked, ok := c.take(nil); ok {
		start, seen = asked.time, true
	} else if c.committed > 0 {
		start, seen = c.committed, true
	}
	c.committed = 0
	at := c.start(start, seen)
	c.open[at].id(id)
	return at
}

// find returns the position of the open response with the ID. A message without one
// belongs to the newest.
func (c *Connection) find(id value) int {
	if len(id.raw()) == 0 {
		return len(c.open) - 1
	}
	return slices.IndexFunc(c.open, func(r *response) bool { return id.is(r.observation.ResponseID) })
}

// start opens a response and returns its position.
func (c *Connection) start(start int64, seen bool) int {
	if len(c.open) == maxResponses {
		c.end(0)
	}
	r := &response{out: c.begin(start, seen)}
	c.mu.Lock()
	r.observation.Model = c.model
	c.mu.Unlock()
	r.observation.Format, r.observation.Streamed = c.format, true
	c.open = append(c.open, r)
	return len(c.open) - 1
}

// end ends the response at a position.
func (c *Connection) end(at int) {
	r := c.open[at]
	c.open = slices.Delete(c.open, at, at+1)
	r.observation.Unparsed, c.unparsed = c.unparsed, Unparsed{}
	r.close()
	r.out.End(r.observation, c.time)
}

// waiting reports whether a request has no response yet.
func (c *Connection) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests) > 0
}

// take removes the oldest request, which must not have another ID than the given one.
func (c *Connection) take(id value) (asked request, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.requests) == 0 || id.hasText() && c.requests[0].id != "" && id.name() != c.requests[0].id {
		return request{}, false
	}
	asked = c.requests[0]
	c.requests = slices.Delete(c.requests, 0, 1)
	return asked, true
}

// clientMessages takes what the client sent. What cannot be read of it is no part of an
// answer, and does not count.
type clientMessages Connection

func (*clientMessages) tooLong() {}
func (*clientMessages) invalid() {}
func (*clientMessages) corrupt() {}
func (*clientMessages) tail()    {}

func (m *clientMessages) event(e event) {
	v, ok := parse(e.data)
	if !ok {
		return
	}
	c := (*Connection)(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.get("type").is("response.create") {
		if len(c.requests) == maxRequests {
			c.requests = slices.Delete(c.requests, 0, 1)
		}
		c.requests = append(c.requests, request{m.clientTime, v.get("event_id").name()})
	}
	for name, part := range v.members {
		switch string(name) {
		case "setup":
			c.model = part.get("model").name()
		case "clientContent":
			if part.get("turnComplete").isTrue() {
				c.requests = append(c.requests[:0], request{time: m.clientTime})
			}
		case "toolResponse":
			c.requests = append(c.requests[:0], request{time: m.clientTime})
		case "realtimeInput": // one response answers all of it
			if part.get("text") != nil || part.get("activityEnd") != nil {
				c.requests = append(c.requests[:0], request{time: m.clientTime})
			}
		}
	}
}
