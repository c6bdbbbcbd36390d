// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// connection is the connection to the upstream after an upgrade to WebSocket. Each
// direction is copied by a goroutine of its own, unlike the answer to a plain request. So
// that neither waits while the other decodes, only the server's side uses the mutex of the
// decoding.
type connection struct {
	io.ReadWriteCloser

	decoding *decoding
	// The mutex of the decoding guards server and pending.
	server  *llmstream.Connection // until the decoding ends
	pending arrival
	// client is the same decoder, for the goroutine that copies what the client sends.
	client atomic.Pointer[llmstream.Connection]
	// closedBy is the side that closed first.
	closedBy atomic.Int32
}

// Values of closedBy.
const (
	closedByUpstream = 1 + iota
	closedByClient
)

// newConnection is called with the mutex of the decoding.
func newConnection(d *decoding, body io.ReadWriteCloser, head llmstream.AnswerHead) *connection {
	c := &connection{ReadWriteCloser: body, decoding: d}
	c.server = llmstream.NewConnection(head, d.limits(), func(start int64, seen bool) llmstream.Response {
		return &call{decoding: d, trace: d.trace.sibling(), start: start, startUnseen: !seen, refusals: d.memory.Refusals()}
	})
	c.client.Store(c.server)
	return c
}

// Read reads what the server sends. It first decodes what the last read returned, which has
// been sent since, and which p still holds.
func (c *connection) Read(p []byte) (int, error) {
	d := c.decoding
	d.observe(c.decode)
	n, err := c.ReadWriteCloser.Read(p)
	d.mutex.Lock()
	c.pending = arrival{p[:n], d.now()}
	d.mutex.Unlock()
	c.noteClose(err)
	return n, err
}

// decode decodes what the last read returned. It is called with the mutex of the decoding.
func (c *connection) decode() {
	last := c.pending
	c.pending = arrival{}
	c.decoding.write(last)
}

// noteClose records that the upstream closed the connection: any error or end of it says so,
// except net.ErrClosed, which is from the tap's own Close.
func (c *connection) noteClose(err error) {
	if err != nil && !errors.Is(err, net.ErrClosed) {
		c.closedBy.CompareAndSwap(0, closedByUpstream)
	}
}

// Write forwards what the client sends. It decodes it before, so that a request is known
// before its response.
func (c *connection) Write(p []byte) (int, error) {
	if decoder := c.client.Load(); decoder != nil {
		d := c.decoding
		ok := d.try(func() {
			if n := decoder.WriteClient(p, d.now()); n > 0 {
				d.receiver.telemetry.ReceiverTokenTapRequestsUnobserved.Add(context.Background(), int64(n))
			}
		})
		if !ok {
			c.client.Store(nil)
		}
	}
	n, err := c.ReadWriteCloser.Write(p)
	c.noteClose(err)
	return n, err
}

// CloseWrite is called when the client has closed its side.
func (c *connection) CloseWrite() error {
	c.closedBy.CompareAndSwap(0, closedByClient)
	if half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported // then both sides are closed
}

// end ends the calls that are still open, and releases the decoder. It is called with the
// mutex of the decoding.
func (c *connection) end(time int64) {
	defer func() {
		c.server = nil
		c.client.Store(nil)
	}()
	d := c.decoding
	d.answered.complete = c.closedBy.Load() == closedByUpstream
	d.answered.clientClosed = !d.answered.complete
	var left llmstream.Observation
	d.guarded(func() { left.Unparsed = c.server.End(time) })
	if c.server.Recognised() {
		d.count(d.unparsed(&left, false))
	} else {
		d.receiver.telemetry.ReceiverTokenTapExchangesUnrecognised.Add(context.Background(), 1)
	}
}
