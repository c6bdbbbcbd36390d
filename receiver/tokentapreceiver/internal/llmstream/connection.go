// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
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

	format    *answerFormat
	read      eventReader
	tried     int
	model     string
	byteRate  int64 // of the session's audio, in bytes per second; 0 if unknown
	index     int64 // of the server's next message
	time      int64
	committed int64 // when the server last committed the client's input, or 0
	open      []*response
	evicted   bool     // a response was evicted
	gap       bool     // a message that may be one of the next response was skipped as too long
	unparsed  Unparsed // since the last response ended

	stopped atomic.Bool // neither side is read any more
}

// response is an open response.
type response struct {
	record
	out Response
	gap bool // a message that may be one of the response was skipped as too long
}

// NewConnection returns a decoder of a connection whose upgrade was accepted. It calls
// begin for each response, with the Unix time in nanoseconds at which it started. If seen
// is false, the start is unknown, and start is the time of the response's first message.
func NewConnection(head AnswerHead, limits Limits, begin func(start int64, seen bool) Response) *Connection {
	extensions := strings.Join(head.Header.Values("Sec-WebSocket-Extensions"), ",")
	c := &Connection{
		begin:    begin,
		format:   noFormat,
		byteRate: pcm16Rate,
		server:   newWebSocketFramer(limits, false, extensions),
		client:   clientMessages{framer: newWebSocketFramer(limits, true, extensions)},
	}
	c.readAs(pathFacts(head.Path, head.RawQuery).format)
	return c
}

// readAs reads the connection as one of a format, unless that does not come over connections.
func (c *Connection) readAs(f *answerFormat) {
	if f.connection != nil {
		c.format, c.read = f, f.newReader()
	}
}

// Recognised reports whether the connection is one of a known service.
func (c *Connection) Recognised() bool { return c.format != noFormat }

// connectionFormat assigns the messages of a connection to its responses.
type connectionFormat struct {
	// responseOf returns the position of the open response that a message of the server
	// belongs to, which it may begin, or -1.
	responseOf func(c *Connection, v value) int
	// clientMember reads a member of what the client sent. The format may not be known yet, so
	// those of all formats read it.
	clientMember func(name []byte, m value, said *clientMessage)
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
	for c.Recognised() {
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

// Open calls visit with each open response, and what it reported so far, unless the connection is
// not read any more. It must not be called concurrently with WriteServer and End.
func (c *Connection) Open(visit func(r Response, o *Observation)) {
	if c.stopped.Load() {
		return
	}
	for _, r := range c.open {
		visit(r.out, &r.observation)
	}
}

// serverMessages takes what the server sent.
type serverMessages Connection

func (s *serverMessages) invalid() { s.unparsed.Invalid++ }
func (s *serverMessages) tail()    { s.unparsed.Tail = true }

func (s *serverMessages) tooLong() {
	s.index++
	s.unparsed.TooLong++
	s.gap = len(s.open) == 0
	for _, r := range s.open {
		r.gap = true
	}
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
		if c.readAs(formatOf(e, v)); c.read == nil {
			c.unknown()
			return
		}
	}
	at := c.format.connection.responseOf(c, v)
	if at < 0 {
		return
	}
	r := c.open[at]
	r.observation.Events++
	r.begin()
	r.event = e
	c.read(e, v, &r.record)
	r.look(v)
	if chunk, ok := r.take(); ok {
		chunk.Time, chunk.Index, chunk.AfterGap = c.time, index, r.gap
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

// next opens the next response and returns its position, or -1 if the message may be a later
// one of an evicted response.
func (c *Connection) next(id value, created bool) int {
	full := len(c.open) == maxResponses
	if (full || c.evicted) && !created {
		return -1
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
	r := &response{out: c.begin(start, seen), gap: c.gap}
	c.gap = false
	r.observation.Model = cmp.Or(c.model, c.client.sessionModel())
	r.observation.Format, r.observation.Streamed = c.format.name, true
	r.byteRate = c.byteRate
	c.open = append(c.open, r)
	return len(c.open) - 1
}

// end ends the response at a position.
func (c *Connection) end(at int) {
	r := c.open[at]
	c.open = slices.Delete(c.open, at, at+1)
	r.observation.Unparsed, c.unparsed = c.unparsed, Unparsed{}
	r.lengthUnknown = r.lengthUnknown || r.gap
	r.close()
	r.out.End(r.observation, c.time)
}
