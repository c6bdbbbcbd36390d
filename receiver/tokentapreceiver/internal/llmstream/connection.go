// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
)

// Response takes what one response of a connection reports.
type Response interface {
	Chunk(c Chunk)
	// End is called once, with the Unix time in nanoseconds at which the response ended.
	End(o Observation, time int64)
}

// maxResponses limits the open responses of a connection: the oldest is evicted. maxRequests
// limits the requests that wait for a response: the starts of further ones are not kept.
const (
	maxResponses = 16
	maxRequests  = 16
)

// Connection reads both directions of a WebSocket connection on which a service gives
// responses: OpenAI's Realtime and Responses APIs, and Gemini Live. A response starts with
// the client's request for it, or when the server commits what the client said.
//
// WriteServer and End must not be called concurrently. WriteClient may be called beside
// them, and neither side waits while the other parses. For a start before its response,
// call it before the bytes are forwarded.
type Connection struct {
	begin  func(start int64, seen bool) Response
	server webSocketFramer
	client clientMessages

	format    Format
	read      reader
	tried     int
	model     string
	index     int64 // of the server's next message
	time      int64
	committed int64 // when the server last committed the client's input, or 0
	open      []*response
	evicted   bool     // a response was evicted
	unparsed  Unparsed // since the last response ended

	stopped atomic.Bool // neither side is read any more
}

// response is an open response.
type response struct {
	record
	out Response
}

// NewConnection returns a decoder of a connection whose upgrade was accepted. It calls
// begin for each response, with the Unix time in nanoseconds at which it started. If seen
// is false, the start is unknown, and start is the time of the response's first message.
func NewConnection(exchange Exchange, limits Limits, begin func(start int64, seen bool) Response) *Connection {
	extensions := strings.Join(exchange.Header.Values("Sec-WebSocket-Extensions"), ",")
	c := &Connection{
		begin:  begin,
		server: newWebSocketFramer(limits, false, extensions),
		client: clientMessages{framer: newWebSocketFramer(limits, true, extensions)},
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

// WriteClient takes bytes that the client sent. It returns the number of requests whose
// start was not kept, because too many wait for a response.
func (c *Connection) WriteClient(p []byte, time int64) (unobserved int) {
	m := &c.client
	if c.stopped.Load() {
		m.framer.stop()
		return 0
	}
	m.time, m.unobserved = time, 0
	m.framer.write(p, m)
	return m.unobserved
}

// End says that the connection ended, and with it all open responses. It returns what could
// not be read and belongs to no response.
func (c *Connection) End(time int64) Unparsed {
	c.time = time
	c.server.end((*serverMessages)(c))
	for c.format != "" {
		asked, ok := c.client.take(nil)
		if !ok {
			break
		}
		c.start(asked.time, true)
	}
	for len(c.open) > 0 {
		c.end(0)
	}
	return c.unparsed
}

// serverMessages takes what the server sent.
type serverMessages Connection

func (s *serverMessages) invalid() { s.unparsed.Invalid++ }
func (s *serverMessages) tail()    { s.unparsed.Tail = true }

func (s *serverMessages) tooLong() {
	s.index++
	s.unparsed.TooLong++
	(*Connection)(s).unknown()
}

func (s *serverMessages) corrupt() {
	s.unparsed.Corrupt++
	(*Connection)(s).stop()
}

func (s *serverMessages) event(e event) {
	c := (*Connection)(s)
	index := c.index
	c.index++
	v, ok := parse(e.data)
	if !ok {
		c.unparsed.Invalid++
		c.unknown()
		return
	}
	if c.read == nil {
		format := shapeOf(e, v)
		if !hasResponses(format) {
			c.unknown()
			return
		}
		c.format, c.read = format, newReader(format)
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

// unknown counts a message that says nothing about the format. After maxTries of them, the
// connection is one of another service.
func (c *Connection) unknown() {
	if c.read != nil {
		return
	}
	if c.tried++; c.tried == maxTries {
		c.stop()
	}
}

// stop ends the reading of both sides. The client's side releases its memory in its next write.
func (c *Connection) stop() {
	c.server.stop()
	c.stopped.Store(true)
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
		if !output && (content == nil || !c.client.waiting()) {
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
		asked, ok := c.client.take(failure.get("event_id"))
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
			c.model = model.name()
		}
		return -1
	}
	full := len(c.open) == maxResponses
	if (full || c.evicted) && !kind.is("response.created") {
		return -1 // perhaps a later message of an evicted response
	}
	if full {
		c.evicted, c.open[0].observation.Evicted = true, true
		c.end(0)
	}
	start, seen := c.time, false
	if asked, ok := c.client.take(nil); ok {
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
	r := &response{out: c.begin(start, seen)}
	r.observation.Model = cmp.Or(c.model, c.client.sessionModel())
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
