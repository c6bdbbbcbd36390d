// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/binary"
	"net"
	"sync"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// gRPC holds the frames of a message until the message is complete, and has no hook that
// sees them before. So a meter follows the frames on each connection, above TLS, and
// counts unfinished messages toward max_memory_mib. At the limit it closes the
// connection: gRPC offers no way to end a single call from there.

// meteredCredentials adds a meter to each connection.
type meteredCredentials struct {
	credentials.TransportCredentials
	store *assembly.Store
	// refused is called with the error that a connection is closed with.
	refused func(error)
}

// ServerHandshake implements credentials.TransportCredentials.
func (c meteredCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	return newMeteredConn(conn, c.store, c.refused), info, nil
}

// meteredConn is a connection with a meter.
type meteredConn struct {
	net.Conn
	refused func(error)

	mu sync.Mutex
	// mu guards everything declared below.
	received, sent frames
	calls          map[uint32]*unfinished // open calls by HTTP/2 stream
	newest         uint32                 // the HTTP/2 stream of the newest call
	memory         ingest.Reservation
	err            error // why the meter has stopped
}

func newMeteredConn(conn net.Conn, store *assembly.Store, refused func(error)) *meteredConn {
	return &meteredConn{
		Conn: conn, refused: refused,
		received: frames{skip: len(http2.ClientPreface)},
		calls:    map[uint32]*unfinished{},
		memory:   ingest.Reservation{Store: store},
	}
}

// frameMemory is about what gRPC takes for a DATA frame besides its bytes.
const frameMemory = 64

// unfinished is the message that arrives in a call.
type unfinished struct {
	prefix  [5]byte
	begun   int   // bytes of prefix
	missing int64 // bytes of the message
	held    int64 // bytes that count toward max_memory_mib
}

// Read implements net.Conn.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.received.split(p[:n], c.receive)
	}
	if c.err != nil {
		return 0, c.err
	}
	return n, err
}

// Write implements net.Conn.
func (c *meteredConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.err == nil {
		c.sent.split(p, c.send)
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *meteredConn) Close() error {
	c.mu.Lock()
	c.stop(net.ErrClosed)
	c.mu.Unlock()
	return c.Conn.Close()
}

// stop ends the meter. gRPC frees the messages when it closes the connection.
func (c *meteredConn) stop(err error) {
	if c.err == nil {
		c.err = err
		c.memory.Free()
	}
}

// receive notes a piece of a frame from the client.
func (c *meteredConn) receive(f *frame, data []byte) {
	switch f.kind {
	case http2.FrameHeaders:
		if f.stream > c.newest { // otherwise the trailers, or an error
			c.newest = f.stream
			c.calls[f.stream] = new(unfinished)
		}
	case http2.FrameRSTStream:
		c.end(f.stream)
	case http2.FrameData:
		if call := c.calls[f.stream]; call != nil && c.err == nil {
			c.hold(call, data)
		}
	}
}

// send notes a piece of a frame to the client.
func (c *meteredConn) send(f *frame, _ []byte) {
	if f.kind == http2.FrameRSTStream || f.kind == http2.FrameHeaders && f.flags.Has(http2.FlagHeadersEndStream) {
		c.end(f.stream)
	}
}

func (c *meteredConn) end(stream uint32) {
	if call := c.calls[stream]; call != nil && c.err == nil {
		c.release(call)
	}
	delete(c.calls, stream)
}

func (c *meteredConn) release(call *unfinished) {
	if call.held > 0 {
		_ = c.memory.Add(-call.held) // a release does not fail
		call.held = 0
	}
}

// hold counts what follows the last message that data completes.
func (c *meteredConn) hold(call *unfinished, data []byte) {
	if len(data) == 0 {
		return
	}
	more := int64(frameMemory)
	for len(data) > 0 {
		if call.begun < len(call.prefix) {
			n := copy(call.prefix[call.begun:], data)
			call.begun += n
			data = data[n:]
			if call.begun == len(call.prefix) {
				call.missing = int64(binary.BigEndian.Uint32(call.prefix[1:]))
			}
		} else {
			n := min(call.missing, int64(len(data)))
			call.missing -= n
			data = data[n:]
			more += n
		}
		if call.begun == len(call.prefix) && call.missing == 0 {
			call.begun, more = 0, 0
			c.release(call)
		}
	}
	if more == 0 {
		return
	}
	if err := c.memory.Add(more); err != nil {
		c.stop(err)
		c.refused(err)
		return
	}
	call.held += more
}

// frame is the header of an HTTP/2 frame.
type frame struct {
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
}

// frames splits one direction of an HTTP/2 connection into frames.
type frames struct {
	skip    int // bytes before the next header
	header  [9]byte
	begun   int // bytes of header
	frame   frame
	left    int  // bytes of the frame
	padded  bool // the next byte is the length of the padding
	padding int  // bytes after left
}

// split calls visit for each piece of a frame in p, and at least once for each frame.
func (f *frames) split(p []byte, visit func(*frame, []byte)) {
	for {
		n := min(f.skip, len(p))
		f.skip -= n
		p = p[n:]
		if len(p) == 0 {
			return
		}
		if f.begun < len(f.header) {
			n := copy(f.header[f.begun:], p)
			f.begun += n
			p = p[n:]
			if f.begun < len(f.header) {
				return
			}
			f.begin()
			visit(&f.frame, nil)
		}
		if f.padded && len(p) > 0 {
			f.padded = false
			f.padding = min(int(p[0]), f.left-1) // more is an error, which gRPC finds
			f.left -= 1 + f.padding
			p = p[1:]
		}
		if n := min(f.left, len(p)); n > 0 {
			visit(&f.frame, p[:n])
			f.left -= n
			p = p[n:]
		}
		if f.left > 0 {
			return
		}
		f.begun = 0
		f.skip, f.padding = f.padding, 0
	}
}

func (f *frames) begin() {
	h := f.header[:]
	f.left = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	f.frame = frame{http2.FrameType(h[3]), http2.Flags(h[4]), binary.BigEndian.Uint32(h[5:]) &^ (1 << 31)}
	f.padded = f.left > 0 && f.frame.kind == http2.FrameData && f.frame.flags.Has(http2.FlagDataPadded)
}
